"""Behaves like `edt serve`: two jobs that are submitted run for a few looks each, or until they are stopped.

python fake_serve.py MODE --home FOLDER ...         MODE: works, fails (to start), endless (jobs)
"""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from fake_service import TOKEN, Asked, FakeService, Server, job

LOOKS = 4


class Serving(FakeService):
    """A service whose jobs come along whenever they are listed."""

    is_endless = False

    def submit(self, asked: Asked) -> Any:
        spec = json.loads(asked.parts()["spec"])
        owner = ("ada", "bob")[len(self.jobs)]
        new = job(f"j{owner * 2}", owner=owner, state="running", size=2, looks=0) | spec
        self.jobs[new["id"]] = new
        return new

    def list_jobs(self, asked: Asked) -> Any:
        for one in self.jobs.values():
            one["looks"] += 1
            if one["state"] == "stopping":
                one.update(state="stopped", size=0)
            elif one["looks"] == LOOKS and not self.is_endless:
                one.update(state="succeeded", size=0)
        return super().list_jobs(asked)

    def wish(self, asked: Asked, job_id: str, wish: str) -> Any:
        self.jobs[job_id]["state"] = "stopping"
        return self.jobs[job_id]


def main() -> None:
    mode, home = sys.argv[1], Path(sys.argv[sys.argv.index("--home") + 1])
    if mode == "fails":
        sys.exit("edt serve: --slots 4: there is no room")
    service = Serving(jobs={})
    service.is_endless = mode == "endless"
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    # Something that works in the folder and would outlive the service.
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", str(home)], start_new_session=True
    )
    server = Server(service)
    (home / "token").write_text(TOKEN)
    (home / "server.json").write_text(json.dumps({"url": service.url, "pid": 1}))
    done.wait()
    server.stop()


main()
