"""What the processes of a WMLA job find in their environment."""

import uuid
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.environment import (
    OF_A_PROCESS,
    Identity,
    JobLayout,
    of_driver,
    of_job,
    of_process,
)
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.adapters.wmla.running.workers import of_rank
from edt_launch.membership.protocol import Slot

RESULT = ResultDir(Path("/r/j 1"))
LAYOUT = JobLayout(
    Framework.ELASTIC,
    RESULT,
    work=Path("/r/j 1/_submitted_code/model"),
    data=Path("/data"),
    fabric_home=Path("/lib/fabric"),
)
NEW = Identity.new("ann", "20260102030405", uuid.UUID(int=1234567890123))


def job(**inherited):
    return of_job(inherited, LAYOUT, NEW, 10, 20)


@pytest.mark.parametrize(
    "inherited, kept, expected",
    [
        ({}, {}, NEW),
        ({}, {"exec_id": "e", "app_id": "a", "driver": "d", "user": "u"}, Identity("e", "a", "d", "u")),
        ({"DLI_EXECID": "x"}, {"exec_id": "e"}, Identity("x", "x", NEW.driver, "ann")),
        ({"EDT_JOB_ID": "j"}, {}, Identity("j", "j", NEW.driver, "ann")),
    ],
)
def test_a_job_keeps_the_names_that_it_is_given_or_had(inherited, kept, expected):
    assert NEW.known_as(inherited, kept) == expected


def test_what_differs_from_process_to_process_is_not_among_the_variables_of_the_job():
    assert not job().keys() & set(OF_A_PROCESS)
    for_drivers = {"CUDA_VISIBLE_DEVICES", "EDT_WMLA_MAX_WORKERS", "PYTHONUNBUFFERED"}
    assert of_driver(RESULT, NEW, "h", 4).keys() - for_drivers <= {*OF_A_PROCESS}
    assert of_process(RESULT.log, 1).keys() <= {*OF_A_PROCESS}
    assert of_rank([Slot("h", 0)], Slot("h", 0)).keys() <= {*OF_A_PROCESS}


def test_the_submitted_code_comes_last_on_the_path():
    found = job(PYTHONPATH="/mine::/lib/fabric/libs/fabric.zip:/r/j 1/_submitted_code/model:/theirs")[
        "PYTHONPATH"
    ]
    assert found.split(":") == [
        *("/lib/fabric/libs/dli_utils", "/lib/fabric/libs/fabric.zip"),
        *("/mine", "/theirs", "/r/j 1/_submitted_code/model"),
    ]
