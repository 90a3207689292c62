"""Options of pytest that this project adds, and what a run says at its end."""

import subprocess
import sys
from pathlib import Path

from left_out import advice

HERE = Path(__file__).parent


def test_what_has_not_begun_in_time_is_skipped_and_said() -> None:
    file = "tests/tools/test_affected_tests.py::test_a_test_file_covers_itself"
    options = ["-p", "no:cacheprovider", "-m", "not full", "--begin-within=0"]
    command = [sys.executable, "-m", "pytest", *options, file]
    told = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout
    assert "1 skipped" in told.splitlines()[-1]
    assert "not begun within 0 seconds: make test-all runs it" in told
    assert "\ntests marked full were left out; to run them: make test-all\n" in told


def test_a_run_says_how_to_have_what_it_has_skipped() -> None:
    assert advice(["", "not begun within 0 seconds"]) == []
    reasons = ["not full", "Skipped: /usr/bin/chromium is not there", "no PostgreSQL server: x", "needs CUDA"]
    ends = ("make test-all", "apt-get install chromium", "apt-get install postgresql", "make gpu-check")
    found = advice(reasons * 2)
    assert len(found) == len(ends)
    assert all(line.endswith(end) for line, end in zip(found, ends, strict=True))
