from pathlib import Path

import pytest

from edt_hvd.wmla.result_file import REPEATED, ResultReader, ResultWriter
from edt_hvd.wmla.results import Begun, MiniBatch, StepDone, encode

PLAN = Begun(1, 1)


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether this process is the coordinator: the last of the list."""
    values = [True]
    monkeypatch.setattr("edt_hvd.is_coordinator", lambda: values[-1])
    return values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def step_done(step: int) -> StepDone:
    return StepDone(0, step, 1, (MiniBatch(1, 0.0, 0.0),))


def test_every_generation_repeats_what_may_be_lost(path: Path, coordinator: list[bool]) -> None:
    first, second = ResultWriter(path), ResultWriter(path)
    for message in (PLAN, *map(step_done, range(100))):
        coordinator.append(True)
        first.emit(message)
        coordinator.append(False)
        second.emit(message)
    coordinator.append(True)
    for message in (PLAN, step_done(99), step_done(100)):  # it is computed again after a rollback
        second.emit(message)
    found = list(ResultReader(path).new())
    assert found[:101] == [PLAN, *map(step_done, range(100))]
    assert found[101:] == [PLAN, *map(step_done, range(100 - REPEATED, 101))]


def test_a_line_is_read_once_it_is_whole(path: Path) -> None:
    reader, (first, second) = ResultReader(path), (encode(step_done(0)), encode(step_done(1)))
    assert list(reader.new()) == []
    path.write_bytes(first + second[:9])
    assert list(reader.new()) == [step_done(0)]
    path.write_bytes(first + second)
    assert list(reader.new()) == [step_done(1)]


def test_what_a_dying_coordinator_has_begun_to_write_holds_up_nobody(
    path: Path, coordinator: list[bool]
) -> None:
    path.write_bytes(encode(step_done(0))[:-9])
    ResultWriter(path).emit(step_done(0))
    assert list(ResultReader(path).new()) == [step_done(0)]


def test_what_is_no_result_is_an_error(path: Path) -> None:
    path.write_bytes(b"something else\n")
    with pytest.raises(ValueError, match="something else"):
        list(ResultReader(path).new())
