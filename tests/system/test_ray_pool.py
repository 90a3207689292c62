"""Pools on a Ray cluster: the devices of nodes are divided among jobs, and others keep theirs."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from attacked.service import Service, tar
from ray_nodes import autoscaled_nodes, missing, one_node, ray_nodes

from harness import BIN, PATIENCE, SLOW, TRACED, ElasticJob, Undisturbed, run
from started import started

pytestmark = [pytest.mark.ray, pytest.mark.full, pytest.mark.skipif(bool(missing()), reason=f"{missing()}")]

STRANGER = """
import ray, sys
ray.init(sys.argv[1], log_to_driver=False)
@ray.remote(**{sys.argv[2]: 1})
class Stranger:
    def here(self): return True
actor = Stranger.remote()
assert ray.get(actor.here.remote())
print("holds", flush=True)
sys.stdin.read()
assert ray.get(actor.here.remote())
print("kept", flush=True)
"""


class PoolJob(ElasticJob):
    """traced.py as a job of a pool."""

    def __init__(self, folder: Path, service: Service, **sizes: int) -> None:
        super().__init__(folder)
        self.service = service
        command = ["python", TRACED.name, str(self.results), "--delay", "1"]
        answer = service.post_archive(tar({TRACED.name: TRACED.read_bytes()}), command=command, **sizes)
        answer.raise_for_status()
        self.id = str(answer.json()["id"])
        self.out = service.home.job(self.id).output.events.parent

    @property
    def row(self) -> dict[str, Any]:
        """What the service says of it."""
        return self.service.job(self.id)

    @property
    def devices(self) -> set[tuple[str, str]]:
        """What it has, as the service says."""
        return {(host["host"], device) for host in self.row["hosts"] for device in host["devices"]}

    def until(self, condition: Callable[[], object], running: bool = True) -> None:
        self.service.until(condition)

    def until_step(self) -> None:
        """Wait until it has done one more step."""
        done = len(self.trace())
        self.until(lambda: len(self.trace()) > done)

    def end(self) -> int:
        """Let it hurry; 0 if it succeeds."""
        (self.results / "hurry").touch()
        self.until(lambda: self.row["state"] in ("succeeded", "failed", "stopped"))
        return int(self.row["state"] != "succeeded")


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def start(*options: str) -> Service:
        made.append(Service(tmp_path, *options, slots=None))
        made[-1].start()
        return made[-1].ready()

    yield start
    for service in made:
        service.close()


def test_two_jobs_and_a_strangers_actor_share_a_cluster(
    tmp_path: Path, pool: Callable[..., Service], undisturbed: Undisturbed
) -> None:
    with ray_nodes(2, cpus=2) as nodes:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with started([sys.executable, "-c", STRANGER, nodes.address, "num_cpus"], **pipes) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdin is not None
            assert stranger.stdout.readline() == "holds\n"
            service = pool("--ray", nodes.address)
            jobs = [PoolJob(tmp_path / name, service, min=1, max=4) for name in ("one", "other")]
            service.until(lambda: sorted(job.size() or 0 for job in jobs) == [1, 2])
            assert sum(len(host["devices"]) for host in service.get("/hosts")["hosts"]) == 3
            assert not jobs[0].devices & jobs[1].devices
            why = service.get(f"/jobs/{jobs[0].id}/why")["lines"]
            assert why[-1].startswith("The pool is waiting for 3 more nodes: Ray was asked for them")
            stranger.stdin.close()
            assert stranger.stdout.readline() == "kept\n"
        service.until(lambda: [job.size() for job in jobs] == [2, 2])
        assert not jobs[0].devices & jobs[1].devices
        nodes.kill(2)
        service.until(lambda: [job.size() for job in jobs] == [1, 1])
        for job in jobs:
            job.until_step()  # or it would end before its first epoch
            assert job.end() == 0, service.report()
            undisturbed.check_final(job.results)  # one that has lost all workers has repeated steps
        assert service.end() == 0


def test_a_job_gets_no_gpu_that_another_program_uses(job: ElasticJob, undisturbed: Undisturbed) -> None:
    with one_node("--num-cpus", 2, "--num-gpus", 3, "--include-dashboard", "false") as node:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with started([sys.executable, "-c", STRANGER, node.address, "num_gpus"], **pipes) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdin is not None
            assert stranger.stdout.readline() == "holds\n"
            job.start(TRACED, job.results, *SLOW, options=("--ray", node.address))
            job.until_size(2)
            assert {event["device"] for event in job.events("started")} == {"1", "2"}
            stranger.stdin.close()
            job.until_size(3)
            assert {event["device"] for event in job.events("started")} == {"0", "1", "2"}
            assert job.end() == 0, job.stderr
            undisturbed.check(job)


def test_jobs_bring_up_the_nodes_that_they_can_use_and_the_last_ones_end_brings_them_down(
    tmp_path: Path, pool: Callable[..., Service], undisturbed: Undisturbed
) -> None:
    with autoscaled_nodes(4) as nodes:
        service = pool("--ray", nodes.address, "--slots-at-most", "3", "--ray-idle-timeout", "1")
        assert nodes.count == 0
        first = PoolJob(tmp_path / "first", service, min=1, max=1)
        first.until_size(1)
        first.until_more_steps(3)
        assert nodes.count == 1
        others = [PoolJob(tmp_path / name, service, min=1, max=4) for name in ("second", "third")]
        service.until(lambda: [job.size() for job in others] == [1, 1])
        first.until_more_steps(3)
        assert nodes.count == 3
        for job in (first, *others):
            assert job.end() == 0, service.report()
            undisturbed.check(job)
        service.until(lambda: nodes.count == 0)


def test_a_job_goes_on_when_the_head_is_gone(job: ElasticJob, undisturbed: Undisturbed) -> None:
    with ray_nodes(2) as nodes:
        job.start(TRACED, job.results, *SLOW, options=("--ray", nodes.address))
        job.until_size(2)
        job.until_more_steps(3)
        nodes.lose_head()
        job.until_more_steps(40)
        assert job.size() == 2
        assert job.end() == 0, job.stderr
        undisturbed.check(job)
        assert job.survivors() == []


def test_random_events_of_nodes_lose_no_sample() -> None:
    chaos = Path(__file__).parents[2] / "benchmarks" / "chaos.py"
    events = ("--changes", 3, "--strikes", 6, "--faults", 0, "--seed", 1, "--duration", 10)
    print(run(sys.executable, chaos, "--ray", 3, *events))


def test_a_cluster_to_try_it_with(job: ElasticJob, undisturbed: Undisturbed) -> None:
    words = [BIN / "edt", "up", "--ray", "1", "--slots", "2"]
    with started(
        words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as up:
        assert up.stderr is not None
        said = iter(up.stderr.readline, "")
        line = next(line for line in said if "edt-launch --ray" in line)
        job.start(TRACED, job.results, *SLOW, options=tuple(line.split("edt-launch ")[1].split()[:2]))
        job.until_size(2)
        assert up.stdin is not None
        up.stdin.write("add n2\n")
        up.stdin.flush()
        job.until_size(4)
        up.stdin.write("drain n2\n")
        up.stdin.flush()
        job.until_size(2)
        job.until_more_steps(3)
        assert job.end() == 0, job.stderr
        undisturbed.check(job)
        every = psutil.Process(up.pid).children(recursive=True)
        up.send_signal(signal.SIGINT)
        for child in every:
            with contextlib.suppress(psutil.NoSuchProcess):  # it is told by its parent, too
                if "edt_launch.cluster.ray.local" in child.cmdline():
                    child.send_signal(signal.SIGINT)  # as a terminal does
        assert up.wait(60) == 0
    assert psutil.wait_procs(every, timeout=PATIENCE)[1] == []
