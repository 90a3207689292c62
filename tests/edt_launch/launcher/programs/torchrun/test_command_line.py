"""The command line of torchrun: every option, both spellings, and variables."""

import sys
from pathlib import Path

import pytest

from edt_launch.cluster.host_file import HostListOptions
from edt_launch.core.errors import UsageError
from edt_launch.launcher.programs.torchrun.arguments import Streams
from edt_launch.launcher.programs.torchrun.command_line import parse

EVERY = (
    *("--nnodes=1:2", "--nproc-per-node=3", "--rdzv-backend=c10d", "--rdzv-endpoint=a:1"),
    *("--rdzv-id=x", "--rdzv-conf=a=b", "--standalone", "--max-restarts=4", "--monitor-interval=1"),
    *("--start-method=fork", "--event-log-handler=null", "--role=r", "--log-dir=l"),
    *("--redirects=1", "--tee=0:3,1:2", "--local-ranks-filter=0,2", "--duplicate-stdout-filters=a,,b,c"),
    *("--duplicate-stderr-filters=d", "--node-rank=0", "--master-addr=m", "--master-port=7"),
    *("--local-addr=q", "--numa-binding=node", "--signals-to-handle=SIGTERM", "--shutdown-timeout=5"),
    *("--virtual-local-rank", "--log-line-prefix-template=[${rank}]"),
)


@pytest.mark.parametrize("spelling", ["-", "_"])
def test_every_option_in_both_spellings(spelling: str) -> None:
    words = [
        "--" + name.replace("-", spelling) + equals + value
        for name, equals, value in (word[2:].partition("=") for word in EVERY)
    ]
    _, asked = parse([*words, "train.py", "--lr", "1", "--nnodes=9"], {})
    assert asked.command == (sys.executable, "-u", "train.py", "--lr", "1", "--nnodes=9")
    assert (asked.min_nodes, asked.max_nodes, asked.nproc, asked.max_restarts) == (1, 2, 3, 4)
    assert (asked.run_id, asked.role, asked.log_dir, asked.shutdown_timeout) == ("x", "r", Path("l"), 5.0)
    assert asked.redirects == Streams(1)
    assert asked.tee == Streams(0, ((0, 3), (1, 2)))
    assert asked.local_ranks == {0, 2}
    assert (asked.stdout_filters, asked.stderr_filters) == (("a,b", "c"), ("d",))
    assert (asked.master_addr, asked.master_port, asked.numa_binding) == ("m", 7, "node")
    assert (asked.virtual_local_rank, asked.prefix) == (True, "[${rank}]")
    assert asked.notes[0] == (
        "--rdzv-backend and --rdzv-endpoint and --rdzv-conf: no service is needed, "
        "edt-launch connects all workers"
    )


def test_variables_stand_for_options_and_options_overrule_them() -> None:
    environment = {"PET_NNODES": "2:3", "PET_NPROC_PER_NODE": "4", "PET_NO_PYTHON": "1", "PET_MODULE": "0"}
    _, asked = parse(["--nnodes", "1", "run.sh"], environment)
    assert (asked.max_nodes, asked.nproc, asked.command) == (1, 4, ("run.sh",))
    with pytest.raises(UsageError, match="--no-python and --module exclude one another"):
        parse(["run.sh"], {**environment, "PET_MODULE": "1"})


def test_options_of_edt_launch_may_stand_among_them() -> None:
    options, asked = parse(
        ["-H", "a:1,b:1", "--nnodes=2", "--no-warm-start", "-m", "pkg", "--max-np", "3"], {}
    )
    assert (options.of(HostListOptions).hosts, options.warm_start, options.max_np) == ("a:1,b:1", False, None)
    assert asked.command == (sys.executable, "-u", "-m", "pkg", "--max-np", "3")


@pytest.mark.parametrize(
    "words, message",
    [
        ("--nnodes 2:1", "--nnodes 2:1: MIN has to be at least 1, and MAX at least MIN"),
        ("--nproc-per-node unknown", "--nproc-per-node unknown: give a number, auto, gpu or cpu"),
        ("--tee 4", "--tee 4: give 0, 1, 2 or 3"),
        ("--logs-specs nobodys", "no entry point torchrun.logs_specs has that name"),
        ("--resize-at noon", "--resize-at noon: give checkpoint, now, or epoch:N"),
        ("--wings 2", "train.py"),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, message: str) -> None:
    with pytest.raises(UsageError, match="." if message == "train.py" else message):
        parse([*words.split(), *(["a.py"] if message != "train.py" else [])], {}, count_gpus=lambda: 0)
