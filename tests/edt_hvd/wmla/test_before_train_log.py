import os
from pathlib import Path

import pytest

from edt_hvd.wmla.before_train_log import NAME, BeforeTrainLog


def test_what_is_printed_before_the_end_is_in_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = BeforeTrainLog({"LOG_DIR": str(tmp_path)})
    os.write(1, b"first\n")
    log.begin()
    os.write(1, b"redirected\n")
    os.write(2, b"an error\n")
    log.end()
    os.write(1, b"last\n")
    assert capfd.readouterr() == ("first\nlast\n", "")
    assert (tmp_path / NAME).read_text() == "redirected\nan error\n"
    assert log.path == tmp_path / NAME
    log.end()


@pytest.mark.parametrize("environ", [{}, {"LOG_DIR": "/is/not/there"}])
def test_without_a_folder_nothing_is_redirected(
    capfd: pytest.CaptureFixture[str], environ: dict[str, str]
) -> None:
    log = BeforeTrainLog(environ)
    log.begin()
    print("shown", flush=True)
    log.end()
    assert capfd.readouterr().out == "shown\n"
