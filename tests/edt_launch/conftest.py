import sys

import pytest

from edt_launch import cli
from ended import Edt, Ended


@pytest.fixture
def edt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Edt:
    """Run the command line in this process."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["edt", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        written = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(int(code), written.out, written.err)

    return run
