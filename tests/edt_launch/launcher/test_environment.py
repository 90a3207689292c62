"""The environment of a job's workers."""

from dataclasses import replace
from pathlib import Path

import pytest

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.environment import environment
from edt_launch.launcher.plan import Plan

PLAN = Plan(SizeLimits(1, 4), RunDir(Path("/out put")))


def test_what_another_launcher_has_said_does_not_pass():
    said = (
        *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME"),
        *("HOROVOD_GLOO_RENDEZVOUS_PORT", "EDT_WORKER", "EDT_WORKER_TOKEN", "EDT_COORDINATOR", "EDT_DEVICE"),
        *("OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", "PMIX_RANK", "PMI_RANK"),
    )
    assert not environment(dict.fromkeys(said, "1"), PLAN).keys() & set(said)


@pytest.mark.parametrize("given, found", [(None, "0"), ("", "0"), ("7", "7"), ("random", "random")])
def test_sets_of_strings_have_one_order_unless_the_user_wants_another(given, found):
    inherited = {} if given is None else {"PYTHONHASHSEED": given}
    assert environment(inherited, PLAN)["PYTHONHASHSEED"] == found


@pytest.mark.parametrize("given, expected", [(None, "1"), ("", "1"), ("4", "4"), ("4,2", "4,2")])
def test_a_worker_computes_with_one_thread_unless_the_user_wants_more(given, expected):
    inherited = {} if given is None else {"OMP_NUM_THREADS": given}
    assert environment(inherited, PLAN)["OMP_NUM_THREADS"] == expected


def test_says_where_everything_is():
    inherited = {"EDT_JOB": "stale", "EDT_CHECKPOINT_KEEP": "99", "PYTHONIOENCODING": "latin-1"}
    told = {
        "EDT_LOGS": "/out put/log",
        "EDT_CHECKPOINT_DIR": "/out put/checkpoint",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONUNBUFFERED": "1",
    }
    assert environment(inherited, PLAN) == told
    settings = {"EDT_CHECKPOINT_INTERVAL": "0.5", "EDT_CHECKPOINT_KEEP": "2"}
    plan = replace(PLAN, options=RunOptions(checkpoint_interval=0.5, keep_checkpoints=2))
    assert environment(inherited, plan) == told | settings
    plan = replace(PLAN, checkpoint_dir=Path("/c"))
    assert environment({}, plan)["EDT_CHECKPOINT_DIR"] == "/c"
