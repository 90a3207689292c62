"""The environment of a job's workers."""

from pathlib import Path

import pytest

from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.environment import environment

PATHS = RunDir(Path("/out put"))


@pytest.mark.parametrize(
    "name",
    [
        *("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME"),
        *("HOROVOD_GLOO_RENDEZVOUS_PORT", "EDT_WORKER", "EDT_TOKEN", "EDT_COORDINATOR", "EDT_DEVICE"),
        *(
            "OMPI_COMM_WORLD_RANK",
            "OMPI_UNIVERSE_SIZE",
            "PMIX_RANK",
            "PMI_RANK",
        ),
    ],
)
def test_what_another_launcher_has_said_does_not_pass(name):
    assert name not in environment({name: "1"}, PATHS)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HOROVOD_FUSION_THRESHOLD",
            "HOROVOD_LOG_LEVEL",
            "OMPI_MCA_btl",
            "OMPI_ALLOW_RUN_AS_ROOT",
            "PMIX_MCA_gds",
        ),
        *("PATH", "EDT_MINE", "CUDA_VISIBLE_DEVICES", "ProgramFiles(x86)", "BASH_FUNC_f%%", "a b;c"),
    ],
)
def test_settings_pass(name):
    assert environment({name: "1"}, PATHS)[name] == "1"


@pytest.mark.parametrize("given, found", [(None, "0"), ("", "0"), ("7", "7"), ("random", "random")])
def test_sets_of_strings_have_one_order_unless_the_user_wants_another(given, found):
    inherited = {} if given is None else {"PYTHONHASHSEED": given}
    assert environment(inherited, PATHS)["PYTHONHASHSEED"] == found


def test_says_where_everything_is():
    inherited = {"EDT_JOB": "stale", "EDT_CHECKPOINT_KEEP": "99", "PYTHONIOENCODING": "latin-1"}
    told = {
        "EDT_LOGS": "/out put/log",
        "EDT_CHECKPOINT_DIR": "/out put/checkpoint",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONUNBUFFERED": "1",
    }
    assert environment(inherited, PATHS) == told
    settings = {"EDT_CHECKPOINT_INTERVAL": "0.5", "EDT_CHECKPOINT_KEEP": "2"}
    assert environment(inherited, PATHS, 0.5, 2) == told | settings
    assert environment({}, PATHS, checkpoints=Path("/c"))["EDT_CHECKPOINT_DIR"] == "/c"
