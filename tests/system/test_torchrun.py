"""A program for torchrun grows, shrinks and loses a worker, with nothing of it changed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import POLL, PROGRAMS, ElasticJob
from pool_harness import Pool
from tiers import full


@pytest.mark.parametrize("options", [[], full(["in_memory"])])
def test_resizes_repeat_nothing_and_a_loss_restarts_all(job: ElasticJob, options: list[str]) -> None:
    job.sizes = ["--program", "torchrun", "--nnodes", "1:4", "--max-restarts", "1"]
    job.allocate(1)
    job.start(PROGRAMS / "distributed.py", job.results, *options)

    def rows() -> list[list[int]]:
        path = job.results / "steps"
        text = path.read_text() if path.exists() else ""
        return [[int(word) for word in line.split()] for line in text.splitlines()]

    job.until(lambda: len(rows()) > 3)
    job.allocate(3)
    job.until(lambda: rows()[-1][2] == 3)
    job.allocate(2)
    job.until(lambda: rows()[-1][2] == 2)
    resized = rows()
    job.worker(1).kill()
    job.until(lambda: rows()[-1][3] == 1)
    assert job.end() == 0, job.stdout + job.stderr
    steps = [(epoch, step) for epoch, step, *_ in resized]
    assert steps == sorted(set(steps)), "a step was repeated"
    assert [event["size"] for event in job.events("world")] == [1, 3, 2, 2]
    assert {count for *_, count in resized} == {0}
    assert job.survivors() == []


@pytest.mark.full
def test_in_a_pool_it_has_whole_nodes_and_makes_room(tmp_path: Path) -> None:
    pool, results = Pool(tmp_path / "a pool's folder"), tmp_path / "results"
    results.mkdir()
    pool.start()
    try:
        words = ("--nnodes", "1:2", "--nproc-per-node", "2", str(PROGRAMS / "distributed.py"), str(results))
        first = pool.submit_command("ann", 2, 4, words, framework="torchrun", allowed=(2, 4))
        pool.until_sizes(4)
        pool.until_training(first)
        second = pool.submit("bob", 1, 1, "--steps", 100_000)
        pool.until_sizes(2, 1)
        pool.until_training(first, second)
        pool.finish(second)
        (results / "hurry").touch()
        pool.until(lambda: pool.job(first).state == "succeeded")
        assert not [event for event in pool.events(first) if event["event"] == "failed"]
    finally:
        print(pool.report())
        pool.close()


SUM = """
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
print("sum", int(ones), "node", os.environ["GROUP_RANK"], flush=True)
sys.exit(3 * (dist.get_rank() == int(sys.argv[1])))
"""


@pytest.mark.full
@pytest.mark.parametrize("failing, exit_code", [(-1, 0), (3, 1)])
def test_the_same_command_on_each_node_is_one_job(tmp_path: Path, failing: int, exit_code: int) -> None:
    (tmp_path / "sum.py").write_text(SUM)
    launch = [sys.executable, "-m", "edt_launch.launcher.command", "--program", "torchrun"]
    options = ["--nnodes", "2", "--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--rdzv-id", "7"]
    nodes = [
        subprocess.Popen(
            [*launch, *options, "--node-rank", str(rank), "sum.py", str(failing)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (1, 0)
    ]
    said = [node.communicate()[0] for node in nodes]
    assert [node.returncode for node in nodes] == [exit_code, exit_code], said
    assert said[1].count("sum 4 node 1") == 2
    assert "uses the hosts of 2 ranks" in said[1]
    assert not list(tmp_path.glob(".edt-invitation*"))


@pytest.mark.full
def test_nodes_come_and_go_where_the_same_command_is_started_again(tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    results.mkdir()
    launch = [sys.executable, "-m", "edt_launch.launcher.command", "--program", "torchrun"]
    options = ["--nnodes", "1:3", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:29477"]
    script = [str(PROGRAMS / "distributed.py"), str(results)]
    nodes = []

    def sizes() -> list[int]:
        path = out / "events.jsonl"
        rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return [row["size"] for row in rows if row["event"] == "world"]

    def until(size: int) -> None:
        while sizes()[-1:] != [size]:
            assert {node.poll() for node in nodes} <= {None, 143}, sizes()
            time.sleep(POLL)

    def start() -> None:
        nodes.append(subprocess.Popen([*launch, *options, "--output-dir", str(out), *script]))

    try:
        start()
        start()
        until(2)
        start()
        until(3)
        assert sizes() == [2, 3]
        nodes[2].terminate()
        until(2)
        (results / "hurry").touch()
        assert [node.wait() for node in nodes] == [0, 0, 143]
    finally:
        for node in nodes:
            node.kill()
            node.wait()
    assert not list(out.glob(".edt-invitation*"))
