"""What `edt verify` says when there is no verdict."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def verify(tmp_path, monkeypatch):
    """Runs the command in a folder with a script that fails."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "fails.py").write_text("raise OSError('no data here')")

    def verify(*words):
        command = [sys.executable, "-m", "edt_launch.cli", "verify", *words, "fails.py"]
        return subprocess.run(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    return verify


def test_a_run_that_fails_is_an_object_in_json_too(verify, tmp_path):
    result = verify("--json", "--np", "1")
    assert result.returncode == 3
    found = json.loads(result.stdout)
    assert found["agree"] is None
    assert "OSError: no data here" in found["error"]
    assert list(map(str, tmp_path.glob("edt-verify-*"))) == [found["logs"]]
