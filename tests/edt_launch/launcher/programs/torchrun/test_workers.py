"""The variables, logs and arguments of the workers of a program for torchrun."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from edt_launch.core.history.events import Failed
from edt_launch.launcher.programs.torchrun.arguments import Arguments, Streams
from edt_launch.launcher.programs.torchrun.workers import Place, TorchrunWorkers, variables
from edt_launch.launcher.view.output import Line
from edt_launch.membership.protocol import MemberPhase, Slot, Worker

SLOTS = tuple(Slot("a", index, str(index)) for index in range(4))


def worker(rank: int, attempt: int = 0) -> Worker:
    return Worker(10 + rank, SLOTS[rank], MemberPhase.STARTING, 0.0, rank, generation=1, attempt=attempt)


def workers(logs: Path, **asked: object) -> TorchrunWorkers:
    given = {"command": ("python", "-u", "train.py", "-x"), "run_id": "id", **asked}
    arguments = Arguments(**given)  # type: ignore[arg-type]
    return TorchrunWorkers(arguments.command, arguments=arguments, logs=logs, complain=pytest.fail)


def test_variables_of_the_second_node() -> None:
    asked = Arguments(nproc=2, max_nodes=4, role="trainer", run_id="id", max_restarts=3)
    assert variables(Place.of(3, SLOTS, 2), asked, attempt=1) == {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4",
        "ROLE_NAME": "trainer",
        "TORCHELASTIC_RESTART_COUNT": "1",
        "TORCHELASTIC_MAX_RESTARTS": "3",
        "TORCHELASTIC_RUN_ID": "id",
        "CUDA_VISIBLE_DEVICES": "2,3",
    }


def test_logs_go_where_torchrun_has_them(tmp_path: Path) -> None:
    ours = workers(
        tmp_path, nproc=4, redirects=Streams(0, ((1, 1),)), tee=Streams(2), local_ranks=frozenset({0, 1})
    )
    found = ours.variables_of(worker(1, attempt=2), SLOTS, "127.0.0.1")
    (run,) = tmp_path.glob("id_*")
    folder = run / "attempt_2" / "1"
    assert found["TORCHELASTIC_ERROR_FILE"] == str(folder / "error.json")
    assert {path.name for path in folder.iterdir()} == {"stdout.log", "stderr.log"}
    assert ours.copy_of(11, "stdout") == folder / "stdout.log"
    assert ours.copy_of(11, "stderr") == folder / "stderr.log"
    ours.variables_of(worker(3), SLOTS, "127.0.0.1")
    assert ours.copy_of(13, "stdout") is None
    assert ours.shown(Line(11, "stdout", "x")).is_shown is False
    assert ours.shown(Line(11, "stderr", "x")) == Line(11, "stderr", "x", "[default1]:")
    assert ours.shown(Line(13, "stderr", "x")).is_shown is False
    assert ours.shown(Line(None, "stderr", "x")) == Line(None, "stderr", "x")


def test_failures_of_the_last_attempt_are_told_the_first_one_last(tmp_path: Path) -> None:
    ours = workers(tmp_path, nproc=2)
    failures = []
    for rank, attempt in ((0, 0), (0, 1), (1, 1)):
        one = worker(rank, attempt)
        one = Worker(
            one.id + 10 * attempt,
            *[getattr(one, f) for f in ("slot", "phase", "started_at", "rank")],
            attempt=attempt,
        )
        file = ours.variables_of(one, SLOTS[:2], "127.0.0.1")["TORCHELASTIC_ERROR_FILE"]
        said = {"py_callstack": f"Traceback of {rank}\nlast line", "timestamp": str(100 - rank)}
        Path(file).write_text(json.dumps({"message": {"message": "m", "extraInfo": said}}))
        failures.append(Failed(one.id, "a", rank, None, rank, 1))
    assert ours.explain([replace(failures[0], worker=99)]) == ""  # it could not be started
    text = ours.explain(failures)
    assert text.startswith("=" * 60 + "\ntrain.py FAILED\n")
    before, _, root = text.partition("Root Cause (first observed failure):\n")
    assert "rank      : 0 (local_rank: 0)\n  exitcode  : 1\n" in before
    assert "rank      : 1 (local_rank: 1)\n" in root
    assert "traceback : Traceback of 1\n  last line\n" in root
    assert text.count("exitcode") == 2
