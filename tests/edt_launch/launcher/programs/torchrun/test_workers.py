"""The variables, logs and arguments of the workers of a program for torchrun."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from edt_launch.core.history.events import Failed
from edt_launch.launcher.programs.torchrun.arguments import Arguments, Streams
from edt_launch.launcher.programs.torchrun.workers import PREPARE, Place, TorchrunWorkers, variables
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


def test_a_virtual_local_rank_sees_its_device_alone() -> None:
    found = variables(Place.of(3, SLOTS, 4), Arguments(nproc=4, virtual_local_rank=True), attempt=0)
    assert (found["LOCAL_RANK"], found["CUDA_VISIBLE_DEVICES"]) == ("0", "3")


def test_threads_as_torchrun_sets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    common = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "mine"}
    assert "OMP_NUM_THREADS" not in workers(tmp_path).environment(common)
    found = workers(tmp_path, nproc=2).environment(common)
    assert (found["OMP_NUM_THREADS"], found[PREPARE]) == ("1", "edt_hvd.torchrun.worker")
    site, mine, stand_in = found["PYTHONPATH"].split(":")
    assert mine == "mine"
    assert (Path(site) / "sitecustomize.py").is_file()
    assert (Path(stand_in) / "torchelastic" / "distributed" / "launch.py").is_file()


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


def test_lines_with_certain_words_are_copied(tmp_path: Path) -> None:
    ours = workers(tmp_path, tee=Streams(3), stdout_filters=("apple",), prefix="${hostname}:${rank}: ")
    ours.variables_of(worker(0), SLOTS[:1], "127.0.0.1")
    assert ours.shown(Line(10, "stdout", "an apple")).prefix == "a:0: "
    ours.shown(Line(10, "stdout", "a pear"))
    (filtered,) = tmp_path.glob("id_*/attempt_0/filtered_stdout.log")
    assert filtered.read_text() == "an apple\n"


def test_another_run_has_a_folder_of_its_own_and_none_without_logs(tmp_path: Path) -> None:
    for _ in range(2):
        workers(tmp_path).variables_of(worker(0), SLOTS[:1], "127.0.0.1")
    assert len(list(tmp_path.glob("id_*"))) == 2
    ours = workers(Path("/dev/null"), tee=Streams(3), stdout_filters=("x",))
    assert ours.variables_of(worker(0), SLOTS[:1], "127.0.0.1")["TORCHELASTIC_ERROR_FILE"] == ""
    assert ours.copy_of(10, "stdout") is None
    assert ours.shown(Line(10, "stdout", "x")).is_shown


def test_a_local_rank_comes_before_the_programs_arguments(tmp_path: Path) -> None:
    ours = workers(tmp_path, nproc=2, passes_local_rank=True)
    ours.variables_of(worker(1), SLOTS[:2], "127.0.0.1")
    assert ours.command_of(worker(1)) == ("python", "-u", "train.py", "--local-rank=1", "-x")
    assert workers(tmp_path).command_of(worker(1)) == ()


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
