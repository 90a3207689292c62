"""Starting launchers: what they inherit, and what they cannot be made to do."""

import fcntl
import json
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.agent.system import processes
from edt_launch.allocator.model import HostDevices
from edt_launch.core.control_protocol import Pause, Refused, write
from edt_launch.core.history.result_file import LauncherResult, ResultFile
from edt_launch.core.system.unix_address import unix_address
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.launching import launchers as launchers_module
from edt_launch.service.jobs.loop.launching.invocation import environment
from edt_launch.service.jobs.loop.launching.launchers import NAMELESS, SAID, Launchers
from edt_launch.service.jobs.records import JobRecord
from no_files import KINDS, put

RECORD = JobRecord(
    "jaaaaaaaa", "ann", ("python", "train.py"), 1, 4, 0.0, name="mine", environment={"LR": "0.1"}
)

PRINTS_ITS_ARGUMENTS = ("sh", "-c", 'printf "%s\\n" "$*"', "sh")
WAITS = ("sh", "-c", "exec sleep 3600", "sh")


@pytest.fixture
def paths(tmp_path: Path) -> JobDir:
    found = JobDir(tmp_path / "a job's folder")
    for folder in found.folders:
        folder.mkdir(parents=True)
    return found


def test_secrets_of_ours_are_not_handed_on(paths: JobDir) -> None:
    ours = {"EDT_DATABASE": "postgresql://me:secret@db/edt", "EDT_TOKEN": "t", "PGPASSWORD": "secret"}
    own, its = environment({**ours, "HOME": "/h", "PATH": "/bin"}, RECORD, paths)
    assert own.keys() == {"HOME", "PATH", "EDT_JOB_ID", "EDT_JOB_NAME", "EDT_MODEL_DIR"}
    assert its == {**own, "LR": "0.1"}
    assert own["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/bin"]
    assert own["EDT_MODEL_DIR"] == str(paths.train)


@pytest.mark.parametrize("path, before", [("/opt/conda/bin:/x", ["/opt/conda/bin", "/x"]), ("", [])])
def test_the_path_of_a_job_comes_before_ours(paths: JobDir, path: str, before: list[str]) -> None:
    record = replace(RECORD, environment={"PATH": path}, array_index=0, data_dir="/data")
    own, its = environment({"PATH": "/bin"}, record, paths)
    assert (its["EDT_ARRAY_INDEX"], its["DATA_DIR"]) == ("0", "/data")
    assert its["PATH"].split(os.pathsep) == [*before, str(Path(sys.executable).parent), "/bin"]
    assert own["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/bin"]


ADOPTS = """
import os
from edt_launch.core.system import environments
environments.adopt()
own = environments.own()
print(os.environ["PYTHONHOME"], "PYTHONHOME" in own, environments.HANDED_OVER in own)
"""


def test_the_variables_of_a_job_change_nothing_in_its_launcher(paths: JobDir) -> None:
    launchers = Launchers((sys.executable, "-P", "-c", ADOPTS))
    assert launchers.start(replace(RECORD, environment={"PYTHONHOME": "/nowhere"}), paths)
    launchers.children[-1].wait()
    assert paths.launcher_log.read_text() == "/nowhere False False\n"


@pytest.mark.parametrize("directory", ["..", "/", "link"])
def test_a_job_runs_inside_its_code(paths: JobDir, directory: str) -> None:
    (paths.code / "link").symlink_to(paths.root)
    with pytest.raises(NotADirectoryError, match="not inside the submitted code"):
        Launchers().start(JobRecord("jaaaaaaaa", "ann", ("x",), 1, 1, 0.0, directory=directory), paths)


def arguments(launchers: Launchers, paths: JobDir, *records: JobRecord) -> list[list[str]]:
    """What jobs' launchers are started with."""
    for record in records:
        assert launchers.start(record, paths)
        launchers.children[-1].wait()
    return [line.split() for line in paths.launcher_log.read_text().splitlines()]


def test_wmla_programs_are_started_as_such(paths: JobDir) -> None:
    record = replace(RECORD, command=("main.py", "-e", "1"), framework=Framework.ELASTIC, data_dir="/data")
    (words,) = arguments(Launchers(PRINTS_ITS_ARGUMENTS), paths, record)
    assert words[words.index("--wmla") :] == [
        "--wmla",
        "--framework",
        "edtPyTorch",
        "--",
        "main.py",
        "--",
        "-e",
        "1",
    ]


def test_horovods_driver_runs_all_but_programs_for_wmla(paths: JobDir) -> None:
    launchers = Launchers(PRINTS_ITS_ARGUMENTS, horovodrun=True, max_log_size=99)
    records = [replace(RECORD, framework=kind, max_restarts=2) for kind in (None, Framework.ELASTIC)]
    plain, wmla = arguments(launchers, paths, *records)
    assert plain[plain.index("--max-log-size") + 1] == "99"
    known = {"--horovodrun", "--max-restarts"}  # of which Horovod's driver does not know the latter
    assert (known.intersection(plain), known.intersection(wmla)) == ({"--horovodrun"}, {"--max-restarts"})


def test_while_one_is_alive_no_other_is_started(paths: JobDir) -> None:
    launchers = Launchers(WAITS)
    assert launchers.start(RECORD, paths)
    assert launchers.is_alive(RECORD.id, paths)
    assert not Launchers().start(RECORD, paths)
    launchers.send(RECORD.id, paths, Pause("1"))  # which may be too early for a signal
    assert launchers.is_alive(RECORD.id, paths)
    assert launchers.kill(RECORD.id, paths)
    launchers.children[0].wait()
    assert not launchers.is_alive(RECORD.id, paths)
    look = launchers.look(RECORD.id, paths, False, DeviceGrant(), None)
    assert (look.identity, look.exit_code) == (None, -9)


@pytest.mark.parametrize("kind", KINDS)
def test_one_whose_folder_is_something_else_is_swept_up_by_the_next_service(paths: JobDir, kind: str) -> None:
    first, second = Launchers(WAITS), Launchers()
    assert first.start(RECORD, paths)
    (child,) = first.children
    while "EDT_MODEL_DIR" not in processes.environment(psutil.Process(child.pid)):
        time.sleep(0.01)  # the kernel shows it a moment after the program has begun
    paths.output.run.rename(paths.root / "it was here")
    put(kind, paths.output.run)
    assert first.is_alive(RECORD.id, paths)
    assert not second.is_alive(RECORD.id, paths)
    grant = DeviceGrant(1, (HostDevices("localhost", ("0",)),))
    assert second.look(RECORD.id, paths, False, grant, None).has_leftovers
    assert not second.start(RECORD, paths)  # while its processes are being ended
    assert child.wait() == -signal.SIGKILL
    while second.look(RECORD.id, paths, False, grant, None).has_leftovers:
        time.sleep(0.01)


def test_who_has_the_lock_is_a_launcher_if_it_says_so_in_time(paths: JobDir) -> None:
    now = [100.0]
    paths.launcher_lock.touch()
    with paths.launcher_lock.open() as daemon:
        fcntl.flock(daemon, fcntl.LOCK_EX | fcntl.LOCK_NB)
        launchers = Launchers(clock=lambda: now[0])
        assert launchers.is_alive(RECORD.id, paths)
        now[0] += NAMELESS
        assert not launchers.is_alive(RECORD.id, paths)
        me = {"pid": os.getpid(), "started": processes.started(os.getpid())}
        paths.launcher.write_text(json.dumps(me))
        assert launchers.is_alive(RECORD.id, paths)
        paths.launcher.write_text(json.dumps({**me, "started": me["started"] - 0.01}))
        assert not launchers.is_alive(RECORD.id, paths)
        launchers = Launchers(("true",))
        assert not launchers.start(RECORD, paths)
        launchers.prepare(RECORD.id, paths)
        assert launchers.start(RECORD, paths)
        for child in launchers.children:
            child.wait()


def test_how_one_has_ended_is_read_from_its_result(paths: JobDir) -> None:
    paths.launcher.write_text(json.dumps({"pid": 7, "started": 0.5}))
    file = ResultFile(paths.output.result)
    for pid, found in ((None, (None, "")), (8, (None, "")), (7, (1, "😀" * 280))):
        if pid is not None:
            file.write(LauncherResult(pid, 0.5, 1, "😀" * 5000))
        look = Launchers().look(RECORD.id, paths, False, DeviceGrant(), None)
        assert (look.exit_code, look.message) == found
        assert paths.output.result.stat().st_size == 4096  # so that it has room on a full disk
    file.close()


NOBODY = [f'{{"pid": {pid}, "started": 5.0}}' for pid in ("1e999", "-1", "0", "OURS")]


@pytest.mark.parametrize("text", [*NOBODY, "", "{}", '{"pid": 7}'])
def test_only_the_launcher_itself_is_killed(paths: JobDir, text: str) -> None:
    paths.launcher.write_text(text.replace("OURS", str(os.getpid())))
    assert not Launchers().kill(RECORD.id, paths)


def test_the_last_words_are_the_end_of_what_was_said(paths: JobDir) -> None:
    for text, said in (("", ""), ("short\n", "short"), ("é" * 10 * SAID + "end\n", "é" * (SAID - 4) + "end")):
        paths.launcher_log.write_text(text)
        assert Launchers().look(RECORD.id, paths, False, DeviceGrant(), None).said == said


@pytest.mark.parametrize("said", [b"nonsense\n", write(Refused("a", "because"))])
def test_a_launcher_that_does_not_accept_a_request_gets_a_signal(
    said: bytes, paths: JobDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's program may listen in its launcher's place."""
    signals: list[int] = []
    monkeypatch.setattr(launchers_module, "_signal", lambda _, number: signals.append(number))
    launchers = Launchers()
    with socket.socket(socket.AF_UNIX) as impostor:
        with unix_address(paths.output.control) as address:
            impostor.bind(address)
        impostor.listen()
        launchers.send(RECORD.id, paths, Pause("a"))
        with impostor.accept()[0] as accepted:
            accepted.sendall(said)
            assert signals == []
            for _ in range(2):
                launchers.look(RECORD.id, paths, True, DeviceGrant(), None)
    assert signals == [signal.SIGUSR1]
