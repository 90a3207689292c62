"""Which commands are torchrun's, and how many workers they may have."""

import sys

import pytest

from edt_launch.cluster.follower import SizeLimits
from edt_launch.cluster.ranks import LateRanks
from edt_launch.core.errors import UsageError
from edt_launch.core.job_sizes import Sizes
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.program import NoOptions
from edt_launch.launcher.programs import kinds
from edt_launch.launcher.programs.torchrun.arguments import Arguments
from edt_launch.launcher.programs.torchrun.kind import KIND, TorchrunProgram, torchruns


@pytest.mark.parametrize(
    "command, found",
    [
        ("torchrun --nnodes 1 a.py", (["--nnodes", "1", "a.py"], False)),
        ("python -m torch.distributed.run a.py", (["a.py"], False)),
        ("/env/bin/python3.11 -u -m torch.distributed.launch a.py", (["a.py"], True)),
        ("python -m torchelastic.distributed.launch a.py", (["a.py"], False)),
        ("python a.py torchrun", None),
        ("a.py", None),
    ],
)
def test_torchruns_own_commands(command: str, found: object) -> None:
    assert torchruns(command.split()) == found


def test_they_are_taken_where_a_script_would_be(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    program = KIND.read(["torchrun", "--nproc-per-node", "2", "a.py"], RunOptions(), NoOptions())
    assert program is not None
    assert program.arguments.command == (sys.executable, "-u", "a.py")
    assert KIND.read(["a.py"], RunOptions(), NoOptions()) is None
    with pytest.raises(UsageError, match=r"b\.py is not a file"):
        KIND.read(["torchrun", "b.py"], RunOptions(), NoOptions())


def test_sizes_are_those_of_whole_nodes_within_all_bounds() -> None:
    program = TorchrunProgram(Arguments(min_nodes=1, max_nodes=4, nproc=2))
    options = program.options(RunOptions(min_np=3, max_np=7))
    assert (options.min_np, options.max_np) == (4, 6)
    assert program.slots_here(SizeLimits(2, 8)) == 2
    with pytest.raises(UsageError, match="leaves no size from --min-np 9 to --max-np 9"):
        program.options(RunOptions(min_np=9, max_np=9))


@pytest.mark.parametrize("framework, prefix", [("torchrun", []), (None, ["torchrun"])])
def test_a_job_has_the_sizes_of_its_command(framework: str | None, prefix: list[str]) -> None:
    two = [*prefix, "--nnodes", "1:4", "--nproc-per-node", "2", "a.py"]
    one = [*prefix, "--nnodes", "2:4", "a.py"]
    assert kinds.sizes(framework, two, Sizes(1, None)) == Sizes(2, 8, (2, 4, 6, 8))
    assert kinds.sizes(framework, two, Sizes(1, 6, (1, 3, 4))) == Sizes(2, 6, (4,))
    assert kinds.sizes(framework, one, Sizes(1, None)) == Sizes(2, 4, None)
    with pytest.raises(ValueError, match="none of them is a multiple of 2"):
        kinds.sizes(framework, two, Sizes(1, None, (3,)))


def test_the_command_line_of_a_job() -> None:
    line = KIND.command_line(RunOptions(min_np=2, max_restarts=3), "torchrun", ["--nnodes", "2", "a.py"])
    assert line == ["--program", "torchrun", "--min-np", "2", "--nnodes", "2", "a.py"]
    options, asked, program = KIND.parse(line[2:])
    assert (options.min_np, asked.min_nodes, program) == (2, 2, ["a.py"])
    with pytest.raises(ValueError, match="command: --nnodes x"):
        KIND.check("torchrun", ["--nnodes", "x", "a.py"], 1, 1)


ELSEWHERE = "192.0.2.7"


@pytest.mark.parametrize(
    "words, number",
    [
        ("--nnodes 3 --rdzv-endpoint 127.0.0.1:29400", 0),
        ("--nnodes 3 --rdzv-endpoint 127.0.0.1:0", None),
        (f"--nnodes 3 --rdzv-endpoint {ELSEWHERE}:29400", 1),
        (f"--nnodes 1 --rdzv-endpoint {ELSEWHERE}:29400", None),
        (f"--nnodes 3 --rdzv-endpoint {ELSEWHERE}:29400 -H a:1,b:1,c:1", None),
        (f"--nnodes 3 --node-rank 2 --master-addr {ELSEWHERE}", 2),
        ("--nnodes 3 --node-rank 1 --master-addr 127.0.0.1", 1),
        ("--nnodes 1:3 --rdzv-backend c10d --rdzv-endpoint no.such.host.invalid:1", None),
    ],
)
def test_the_same_command_on_each_node(words: str, number: int | None) -> None:
    options, arguments, _ = KIND.parse([*words.split(), "--nproc-per-node", "2", "--rdzv-id", "x/1", "a.py"])
    rank = TorchrunProgram(arguments).rank(options, {"SLURMD_NODENAME": "n"})
    assert (rank and rank.number) == number
    if rank is not None:
        is_beside = number == 1 and ELSEWHERE not in words
        assert (rank.count, rank.host, rank.slots) == (3, "n-1" if is_beside else "n", 2)
        assert rank.late == LateRanks(3, 5.0)
        assert rank.start.startswith("torchrun-x_1-")


@pytest.mark.parametrize(
    "words, slurm, late, is_elected",
    [
        ("--rdzv-endpoint 127.0.0.1:29400", {}, LateRanks(3, 5.0), True),
        ("--rdzv-endpoint 127.0.0.1:29400", {"SLURM_JOB_NODELIST": "n[1-3]"}, None, None),
        (
            "--rdzv-endpoint 127.0.0.1:29400",
            {"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_STEP_NUM_TASKS": "3"},
            LateRanks(3, 5.0),
            True,
        ),
        (f"--rdzv-endpoint {ELSEWHERE}:29400", {}, LateRanks(3, 5.0), False),
    ],
)
def test_nodes_that_come_and_go(
    words: str, slurm: dict[str, str], late: LateRanks | None, is_elected: bool | None
) -> None:
    options, arguments, _ = KIND.parse(["--nnodes", "1:3", *words.split(), "a.py"])
    rank = TorchrunProgram(arguments).rank(options, slurm)
    assert (rank and rank.late, rank and rank.is_elected) == (late, is_elected)
    assert rank is None or rank.count == 1
