"""The command line and environment of horovodrun."""

from pathlib import Path

import pytest

from edt_launch.hosts.follower import Limits
from edt_launch.launcher.child import Remote, command, environment
from edt_launch.run_dir import RunDir

PATHS = RunDir(Path("/out put"))


def test_the_command_line():
    words = command(
        ["python", "a b.py", "--min-np", "9"], Limits(2, 4), "lo", PATHS, 30.5, Remote(), ["horovodrun"]
    )
    assert words == [
        *("horovodrun", "--host-discovery-script", "/out put/run/discover_hosts.sh"),
        *(
            "-np",
            "2",
            "--min-np",
            "2",
            "--max-np",
            "4",
            "--network-interface",
            "lo",
            "--elastic-timeout",
            "31",
        ),
        *("--", "python", "a b.py", "--min-np", "9"),
    ]


def test_ssh_options_are_passed_on_for_a_shell_to_read():
    words = command(["x"], Limits(1, 1), "eth0", PATHS, 1, Remote(2222, Path("/my keys/id")), ["horovodrun"])
    assert words[-6:-1] == ["--ssh-port", "2222", "--ssh-identity-file", "'/my keys/id'", "--"]


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
            "ProgramFiles(x86)",
            "a b;c",
        ),
    ],
)
def test_what_another_job_or_no_shell_understands_does_not_pass(name):
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
        *("PATH", "EDT_MINE", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_settings_pass(name):
    assert environment({name: "1"}, PATHS)[name] == "1"


@pytest.mark.parametrize("given, found", [(None, "0"), ("", "0"), ("7", "7"), ("random", "random")])
def test_sets_of_strings_have_one_order_unless_the_user_wants_another(given, found):
    inherited = {} if given is None else {"PYTHONHASHSEED": given}
    assert environment(inherited, PATHS)["PYTHONHASHSEED"] == found


def test_tells_horovodrun_where_everything_is():
    inherited = {
        "EDT_ALLOCATION": "stale",
        "EDT_EVENTS_FD": "99",
        "EDT_JOB": "stale",
        "EDT_CHECKPOINT_KEEP": "99",
        "PYTHONIOENCODING": "latin-1",
    }
    told = {
        "EDT_ALLOCATION": "/out put/run/allocation",
        "EDT_LOGS": "/out put/log",
        "EDT_CHECKPOINT_DIR": "/out put/checkpoint",
        "EDT_FIRST_WORKER": "7",
        "EDT_HANG_TIMEOUT": "",
        "EDT_READY_TIMEOUT": "",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
    }
    assert environment(inherited, PATHS, 7) == told
    settings = {"EDT_CHECKPOINT_INTERVAL": "0.5", "EDT_CHECKPOINT_KEEP": "2"}
    assert environment(inherited, PATHS, 7, 0.5, 2) == told | settings
    assert environment({}, PATHS, hang_timeout=2.5)["EDT_HANG_TIMEOUT"] == "2.5"
    assert environment({}, PATHS, ready_timeout=0.0)["EDT_READY_TIMEOUT"] == "0"
