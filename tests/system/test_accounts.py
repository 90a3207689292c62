"""A service of root's, whose jobs run under accounts of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import POLL, run

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root can start jobs as others"
)

WITH_PYTHON = """
set -e
mount --bind {base} {folder}/python
mount -t tmpfs -o mode=755 none {blocked}
mkdir -p {base}
mount --bind {folder}/python {base}
exec "$@"
"""
"""Lets other accounts get to an interpreter that is in a folder of root's, in this mount namespace alone."""

PROBE = """
echo "ids $(id -u) $(id -g)"
for path in "$SERVICE/token" "$SERVICE/edt.db" "/proc/$1/environ" "$SERVICE/jobs/$2/events.jsonl"; do
    cat "$path" > /dev/null 2>&1 && echo "read $path"
done
kill -9 "$1" 2> /dev/null && echo killed
if [ -n "$2" ]; then
    until grep -q ids "$SERVICE/jobs/$EDT_JOB_ID/log/launcher.log"; do sleep 0.1; done
    mv "$SERVICE/jobs/$EDT_JOB_ID/log" "$SERVICE/jobs/$EDT_JOB_ID/log.old"
    ln -s "$SERVICE/jobs/$2/log" "$SERVICE/jobs/$EDT_JOB_ID/log"
fi
"""
"""Reaches for what is the service's, and for the job $2; has its own log lead to that of the job."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that all accounts may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def service_command(folder: Path) -> list[str]:
    serve = [
        Path(sys.executable).with_name("edt"),
        "serve",
        "--slots",
        "2",
        "--job-users",
        "root=54321,ann=54322",
    ]
    python = Path(os.path.realpath(sys.executable))
    blocked = next((f for f in reversed(python.parents) if not f.stat().st_mode & 0o001), None)
    if blocked is None:
        return [*map(str, serve)]
    (folder / "python").mkdir()
    text = WITH_PYTHON.format(base=sys.base_prefix, folder=folder, blocked=blocked)
    return ["unshare", "--mount", "sh", "-c", text, "sh", *map(str, serve)]


def test_jobs_reach_neither_the_service_nor_the_jobs_of_others(folder: Path) -> None:
    home = folder / "home"
    own = {"EDT_HOME": str(home), "EDT_PORT": "0", "SERVICE": str(home), "XDG_CONFIG_HOME": str(folder)}

    def edt(*words: object, token: str = "") -> str:
        variables = {**os.environ, **own, **({"EDT_TOKEN": token} if token else {})}
        return run(Path(sys.executable).with_name("edt"), *words, **variables)

    (folder / "code").mkdir()
    (folder / "code" / "probe.sh").write_text(PROBE)
    with (folder / "serve.log").open("wb") as log:
        command = service_command(folder)
        service = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log)
    try:
        while not (home / "server.json").exists():
            assert service.poll() is None, (folder / "serve.log").read_text()
            time.sleep(POLL)
        token = edt("users", "add", "ann").split()[-1]
        probe = ("submit", "--code", folder / "code", "--max", 1, "sh", "probe.sh", service.pid)
        first = edt(*probe).split()[-1]
        assert "[0] ids 54321 54321" in edt("logs", "-f", first).splitlines()
        assert "\n[0] ids 54321 54321\n" in (home / "jobs" / first / "log" / "launcher.log").read_text()
        second = edt(*probe, first, token=token).split()[-1]
        while '"state": "succeeded"' not in edt("show", "--json", second):
            time.sleep(10 * POLL)
        assert "\n[0] ids 54322 54322\n" in (home / "jobs" / second / "log.old" / "launcher.log").read_text()
        assert "54321" not in edt("logs", second, token=token)
    finally:
        service.terminate()
        service.wait()
