"""How a job under horovodrun has ended; real ones are in tests/system."""

import os
from types import SimpleNamespace

import pytest

from edt_launch.core.errors import ExitCode
from edt_launch.launcher.horovodrun.run import Horovodrun, _read_note


@pytest.mark.parametrize(
    "exit_code, stop_reason, expected, words",
    [
        (0, None, ExitCode.SUCCESS, ""),
        (0, "failed to activate new hosts", ExitCode.JOB_FAILED, "failed to activate new hosts"),
        (1, "failed to activate new hosts", ExitCode.JOB_FAILED, "failed to activate new hosts"),
        (1, None, ExitCode.JOB_FAILED, "exit code 1"),
    ],
)
def test_a_job_that_horovod_gave_up_has_failed(exit_code, stop_reason, expected, words):
    job = SimpleNamespace(
        _ending=SimpleNamespace(exit_code=None, is_pausing=False),
        _output=SimpleNamespace(first_failure=None, stop_reason=stop_reason, path_of=lambda rank: "own.log"),
        _observed=SimpleNamespace(started=1),
        _plan=SimpleNamespace(paths=SimpleNamespace(horovodrun_log="own.log", log="log")),
    )
    outcome = Horovodrun._conclude(job, exit_code)
    assert outcome.exit_code == expected
    assert words in outcome.message


def test_a_pipe_in_the_place_of_the_note_is_not_waited_for(tmp_path):
    note = tmp_path / "discovered"
    note.write_text("17")
    assert _read_note(note).generation == 17
    note.unlink()
    os.mkfifo(note)
    assert _read_note(note) is None
