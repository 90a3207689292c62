import asyncio

from fastapi import BackgroundTasks
from structlog.testing import capture_logs

from edt_launch.service.api.dependencies import carry_out


def test_a_deletion_that_fails_costs_the_others_nothing() -> None:
    done: list[str] = []

    def fail() -> None:
        raise RecursionError

    afterwards = BackgroundTasks()
    carry_out([lambda: done.append("before"), fail, lambda: done.append("after")], afterwards)
    with capture_logs() as logs:
        asyncio.run(afterwards())
    assert done == ["before", "after"]
    assert [entry["event"] for entry in logs] == ["files could not be deleted"]
