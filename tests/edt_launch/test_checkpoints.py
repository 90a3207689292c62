"""The newest checkpoint, by its name."""

from pathlib import Path

import pytest

from edt_launch.checkpoints import newest, step_of


def test_the_newest(tmp_path):
    for name in ("step-00000009", "step-00000100", ".step-00000200.h.1.0", "state-2"):
        (tmp_path / name).mkdir()
    assert newest(tmp_path) == tmp_path / "step-00000100"
    assert step_of(tmp_path / "step-00000100") == 100


def test_none(tmp_path):
    (tmp_path / "file").touch()
    assert newest(tmp_path) is None
    assert newest(tmp_path / "missing") is None
    assert newest(tmp_path / "file") is None


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="not the name of a checkpoint"):
        step_of(Path("last"))
