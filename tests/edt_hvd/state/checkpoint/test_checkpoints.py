"""When checkpoints are written, what is reported, and which one is gone on from."""

import errno
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.errors import StateError
from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.state.checkpoint.checkpoints import Checkpoints, Settings, for_next_state
from edt_hvd.state.checkpoint.storage import Content
from edt_hvd.state.snapshot import Snapshots
from edt_messages.messages import Message, type_of
from edt_messages.records import content

Messages = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def reported() -> Messages:
    return []


@pytest.fixture
def make(tmp_path: Path, reported: Messages) -> Callable[..., Checkpoints]:
    def make(interval: float = 10.0) -> Checkpoints:
        def emit(message: Message) -> None:
            reported.append((type_of(message), content(message)))

        return Checkpoints(Settings(tmp_path / "checkpoint", interval), 100.0, True, emit)

    return make


def copy_of(commits: int) -> Snapshots:
    snapshots = Snapshots()
    snapshots.take({"weight": torch.full((4,), float(commits))}, commits)
    return snapshots


def offer(checkpoints: Checkpoints, now: float, commits: int) -> None:
    """Offer a copy and wait until it is written, if it is."""
    checkpoints.offer(now, copy_of(commits), {"steps": commits})
    checkpoints._writer.wait()
    checkpoints.collect()


def kinds(reported: Messages) -> list[str]:
    return [kind for kind, _ in reported]


def test_the_interval_is_kept(make: Callable[..., Checkpoints], reported: Messages) -> None:
    checkpoints = make()
    for now in (101.0, 109.9, 110.0, 119.0, 1000.0):
        offer(checkpoints, now, int(now))
    assert [content["step"] for kind, content in reported if kind == "checkpointed"] == [110, 1000]


def test_a_damaged_one_is_skipped_and_set_aside(
    make: Callable[..., Checkpoints], reported: Messages, tmp_path: Path
) -> None:
    first = make(0.0)
    for commits in (1, 2):
        offer(first, 1e6 * commits, commits)
    (tmp_path / "checkpoint" / "step-00000002" / "manifest.json").unlink()
    reported.clear()
    loaded: list[Content] = []
    second = make(0.0)
    said = r"step-00000002 is skipped: it has no manifest\.json; it is now damaged-step-00000002"
    with pytest.warns(UserWarning, match=said):
        second.restore(loaded.append)
    assert [content.commits for content in loaded] == [1]
    assert kinds(reported) == ["checkpoint_skipped", "restored"]
    for commits in (2, 3, 4):
        offer(second, 1e6 * commits, commits)
    found = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    assert found == ["damaged-step-00000002", "step-00000002", "step-00000003", "step-00000004"]
    assert [path.name for path in (tmp_path / "checkpoint" / found[0]).iterdir()] == ["state.pt"]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), StateError("of format 2")])
def test_one_that_is_whole_but_cannot_be_read_ends_the_job(
    make: Callable[..., Checkpoints], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    first = make(0.0)
    for commits in (1, 2):
        offer(first, 1e6 * commits, commits)

    def read(path: Path) -> Content:
        raise error

    monkeypatch.setattr(checkpoints.storage, "read", read)
    with pytest.raises(StateError, match=rf"step-00000002 cannot be read: .*{error.args[-1]}.*, move it out"):
        make().restore(lambda content: None)
    assert len(list((tmp_path / "checkpoint").iterdir())) == 2


def test_a_folder_that_cannot_be_read_ends_the_job(make: Callable[..., Checkpoints], tmp_path: Path) -> None:
    (tmp_path / "checkpoint").touch()
    with pytest.raises(StateError, match="checkpoint: Not a directory; mend that, or name another folder"):
        make().restore(lambda content: None)


def test_no_whole_one_is_told(make: Callable[..., Checkpoints], tmp_path: Path) -> None:
    (tmp_path / "checkpoint" / "step-00000002").mkdir(parents=True)
    with (
        pytest.warns(UserWarning, match="none of the 1 checkpoints"),
        pytest.warns(UserWarning, match="is skipped"),
    ):
        make().restore(lambda content: None)


def test_one_that_does_not_fit_ends_the_job(make: Callable[..., Checkpoints]) -> None:
    offer(make(0.0), 1e6, 1)

    def load(content: Content) -> None:
        raise StateError("it has no 'epoch'")

    with pytest.raises(
        StateError, match=r"step-00000001 does not fit: it has no 'epoch'.*EDT_CHECKPOINT_DIR"
    ):
        make().restore(load)


def test_a_failure_is_told_once_and_so_is_its_end(
    make: Callable[..., Checkpoints], reported: Messages, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoint"
    folder.touch()
    checkpoints = make(0.0)
    with pytest.warns(UserWarning, match="no checkpoint written: .*File exists; training goes on"):
        offer(checkpoints, 1e6, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        offer(checkpoints, 2e6, 2)
        assert kinds(reported) == ["checkpoint_failed"]
        folder.unlink()
        offer(checkpoints, 3e6, 3)
        offer(checkpoints, 4e6, 4)
    again = [content["again"] for kind, content in reported if kind == "checkpointed"]
    assert again == [True, False]
    shutil.rmtree(folder)
    offer(checkpoints, 5e6, 5)  # made anew
    assert [path.name for path in folder.iterdir()] == ["step-00000005"]


def test_what_cannot_be_removed_is_told_once_and_does_not_keep_the_rest(
    make: Callable[..., Checkpoints], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = shutil.rmtree

    def refuse(path: Path) -> None:
        if path.name == "step-00000001":
            raise PermissionError(errno.EPERM, "Not yours")
        remove(path)

    monkeypatch.setattr("edt_hvd.state.checkpoint.directory.shutil.rmtree", refuse)
    checkpoints = make(0.0)
    for commits in (1, 2, 3):
        offer(checkpoints, 1e6 * commits, commits)
    with pytest.warns(UserWarning, match="old checkpoints cannot be removed: .*Not yours"):
        offer(checkpoints, 4e6, 4)
    offer(checkpoints, 5e6, 5)
    assert sorted(path.name[-1] for path in (tmp_path / "checkpoint").iterdir()) == list("1345")


def test_the_end_of_training_is_on_disk_once(make: Callable[..., Checkpoints], reported: Messages) -> None:
    checkpoints = make(0.0)
    offer(checkpoints, 1e6, 1)
    checkpoints.finish(1, lambda: copy_of(1), {"steps": 1})
    assert [content["last"] for _, content in reported] == [False]
    checkpoints.finish(2, lambda: copy_of(2), {"steps": 2, "last": True})
    assert [(content["step"], content["last"]) for _, content in reported] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("INTERVAL", "soon", "EDT_CHECKPOINT_INTERVAL=soon: expected seconds"),
        ("INTERVAL", "inf", "EDT_CHECKPOINT_INTERVAL=inf"),
        ("KEEP", "0", "EDT_CHECKPOINT_KEEP=0: expected a whole number, 1 or more"),
    ],
)
def test_settings_that_make_no_sense(name: str, value: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Settings.from_environment({"EDT_CHECKPOINT_DIR": "x", f"EDT_CHECKPOINT_{name}": value})


def test_settings() -> None:
    assert Settings.from_environment({"EDT_CHECKPOINT_INTERVAL": "1"}) is None
    assert Settings.from_environment({"EDT_CHECKPOINT_DIR": "a b"}) == Settings(Path("a b"), 10.0, 3)
    given = {"EDT_CHECKPOINT_DIR": "x", "EDT_CHECKPOINT_INTERVAL": "0.5", "EDT_CHECKPOINT_KEEP": "1"}
    assert Settings.from_environment(given) == Settings(Path("x"), 0.5, 1)


@pytest.mark.usefixtures("alone")
def test_every_state_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_serial", iter((1, 2, 3)))
    made = [for_next_state({"EDT_CHECKPOINT_DIR": "x"}) for _ in range(2)]
    assert [each._folder for each in made if each is not None] == [Path("x"), Path("x/state-2")]
    assert for_next_state({}) is None
