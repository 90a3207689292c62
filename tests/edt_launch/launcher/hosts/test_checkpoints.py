"""The newest checkpoint, by its name."""

from edt_launch.launcher.hosts.checkpoints import newest


def test_the_newest(tmp_path):
    for name in ("step-00000009", "step-00000100", ".step-00000200.h.1.0", "state-2"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-00000101").touch()
    assert newest(tmp_path) == tmp_path / "step-00000100"
