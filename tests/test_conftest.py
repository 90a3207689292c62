"""Options of pytest that this project adds."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def pytest_says(*options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    file = "tests/tools/test_affected_tests.py::test_a_test_file_covers_itself"
    done = subprocess.run([*command, file], cwd=HERE.parent, capture_output=True, text=True, check=True)
    return done.stdout


def test_what_has_not_begun_in_time_is_skipped_and_said() -> None:
    assert " 1 passed" in f" {pytest_says('--begin-within=600').splitlines()[-1]}"
    told = pytest_says("--begin-within=0")
    assert "1 skipped" in told.splitlines()[-1]
    assert "not begun within 0 seconds: make test-all runs it" in told
