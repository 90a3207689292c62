"""Jobs that are paused and stopped over their launcher's socket, whatever runs them."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.control_protocol import Pause, Request, Stop
from edt_launch.core.errors import ExitCode
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.programs.horovodrun import UnderHorovodrun
from edt_launch.launcher.programs.script import Script
from edt_launch.launcher.runs import job
from edt_launch.service.jobs.loop.launching.control_client import ControlAnswer, Exchange
from recorder import Recorder

TESTS = Path(__file__).parents[2]
FAKE = (sys.executable, "-S", str(TESTS / "edt_launch" / "launcher" / "fake_worker.py"))
PAUSED: tuple[Request, ExitCode] = (Pause("p"), ExitCode.LEFT)
STOPPED: tuple[Request, ExitCode] = (Stop("s"), ExitCode.TERMINATED)


@pytest.fixture
def paths(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / ("a long folder's name " * 6))


Ask = Callable[[Request], None]


@pytest.fixture
def ask(paths: RunDir) -> Iterator[Ask]:
    """Sends a request, once; it has been acknowledged when the job has ended."""
    exchanges: list[Exchange] = []

    def ask(request: Request) -> None:
        if not exchanges:
            exchanges.append(Exchange(paths.control, request))

    yield ask
    assert [exchange.look() for exchange in exchanges] == [ControlAnswer.ACCEPTED]
    assert not paths.control.exists()


@pytest.mark.parametrize(
    "kind, request_, exit_code", [(Script, *PAUSED), (UnderHorovodrun, *STOPPED), (Script, *STOPPED)]
)
def test_jobs_that_wait_for_their_hosts(
    paths: RunDir, ask: Ask, kind: type[Script | UnderHorovodrun], request_: Request, exit_code: ExitCode
) -> None:
    def when_it_is_there() -> None:
        while not paths.launcher.exists():  # which is written when the socket is there
            time.sleep(0.01)
        ask(request_)

    thread = threading.Thread(target=when_it_is_there)
    thread.start()
    plan = Plan(SizeLimits(1, 4), paths, follow=paths.root / "missing")
    assert job.run(kind([*FAKE, "success"]), plan, Recorder(), []).exit_code == exit_code
    thread.join()
