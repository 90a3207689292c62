"""A command is run for each end of a job."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from edt_launch.service.app.notices import Notifier
from edt_launch.service.jobs.states import State
from world import World


def notifier(world: World, program: str | None, patience: float = 60.0) -> Notifier:
    command = None if program is None else shlex.join([sys.executable, "-S", "-c", program])
    return Notifier(command, world.store, lambda job: {"id": job.id}, world.context.stop, patience)


def end(world: World) -> str:
    job = str(world.submit(world.ann)["id"])
    world.go(job, State.STARTING, State.RUNNING, State.FAILED)
    return job


def writing(folder: Path) -> str:
    return f"import sys; open({str(folder / 'told')!r}, 'a').write(sys.stdin.read())"


def test_each_end_is_told_once_also_those_meanwhile(world: World, tmp_path: Path) -> None:
    end(world)  # before
    first = notifier(world, writing(tmp_path))
    jobs = [end(world), end(world)]
    first.look()
    jobs.append(end(world))
    world.submit(world.ann)
    second = notifier(world, writing(tmp_path))  # another service
    for one in (second, second, first):
        one.look()
    assert [json.loads(line)["id"] for line in (tmp_path / "told").read_text().splitlines()] == jobs


def test_what_ended_while_nobody_was_to_be_told_is_not_told(world: World, tmp_path: Path) -> None:
    notifier(world, writing(tmp_path))
    notifier(world, None).look()
    end(world)
    notifier(world, writing(tmp_path)).look()
    assert not (tmp_path / "told").exists()


@pytest.mark.parametrize(
    "program, patience, told",
    [
        ("import sys; sys.exit('no mail today')", 60.0, {"reason": "exit code 1", "said": "no mail today"}),
        ("import time; time.sleep(600)", 0.0, {"reason": "no end after 0 s", "said": ""}),
    ],
)
def test_a_command_that_fails_is_logged_and_not_repeated(
    world: World, program: str, patience: float, told: dict[str, Any]
) -> None:
    one = notifier(world, program, patience)
    job = end(world)
    with capture_logs() as logs:
        one.look()
        one.look()
    assert logs == [{"event": "a notice has failed", "log_level": "warning", "job": job, **told}]


def test_a_notice_that_the_end_of_the_service_interrupts_is_repeated(world: World, tmp_path: Path) -> None:
    one = notifier(world, writing(tmp_path))
    job = end(world)
    world.context.stop.set()
    one.look()
    (tmp_path / "told").unlink(missing_ok=True)
    world.context.stop.clear()
    one.look()
    assert json.loads((tmp_path / "told").read_text()) == {"id": job}


def test_a_command_that_is_not_there_is_logged(world: World) -> None:
    one = Notifier("/no/such/command", world.store, lambda job: {}, world.context.stop)
    end(world)
    with capture_logs() as logs:
        one.look()
    assert [entry["event"] for entry in logs] == ["the command for notices cannot be started"]
