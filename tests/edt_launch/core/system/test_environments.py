import os
import subprocess
import sys
from pathlib import Path

import pytest

STATISTICS = "raise ImportError('of the program')"


@pytest.mark.parametrize("named", ["", ".", "a folder"])
def test_modules_of_the_program_replace_none_of_ours(named: str, tmp_path: Path) -> None:
    folder = tmp_path / named
    folder.mkdir(exist_ok=True)
    (folder / "statistics.py").write_text(STATISTICS)
    variables = os.environ | {"PYTHONPATH": f"{tmp_path / 'no folder'}{os.pathsep}{named}"}
    code = "import edt_launch, statistics, sys; print(sys.path[-1])"
    words = [sys.executable, "-P", "-c", code]
    ended = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == str(folder.resolve()) or not named, ended
    assert not ended.stderr
