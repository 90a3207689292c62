import sys

import pytest

from edt_launch.cli import main
from edt_launch.core.errors import ExitCode
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.program import Program
from edt_launch.launcher.runs import job
from ended import Edt, Ended


@pytest.fixture
def edt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Edt:
    """Run the command line in this process."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["edt", *words])
        with pytest.raises(SystemExit) as ended:
            main.main()
        written = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(int(code), written.out, written.err)

    return run


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Program, Plan]]:
    """The programs and plans of the jobs that `edt-launch` was told to run; they all succeed."""
    plans: list[tuple[Program, Plan]] = []

    def run(program: Program, plan: Plan, *_: object) -> JobOutcome:
        plans.append((program, plan))
        return JobOutcome(ExitCode.SUCCESS)

    monkeypatch.setattr(job, "run", run)
    return plans
