"""Stands for the pool's loop: each job that waits runs at once, and its loss is its learning rate."""

import json
import threading
import time
from typing import Any

from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.store import Store
from edt_launch.service.states import State, Wanted


def run(settings: Any, store: Store, bus: Bus, stop: threading.Event) -> None:
    seen = -1
    while not stop.is_set():
        seen = bus.wait(Topic.DESIRED_STATE, seen=seen, timeout=0.1)
        for job in store.jobs.live():
            if job.wanted is Wanted.STOP:
                store.jobs.move(job.id, State.STOPPED, "stopped by its owner", time.time())
            elif job.name != "waits":
                folder = settings.paths.job(job.id)
                config = json.loads((folder.code / job.directory / "config.json").read_text())
                entries = [{"steps": 1, "loss": config["learning_rate"]}]
                (folder.root / "val_dict_list.json").write_text(json.dumps(entries))
                for state in (State.STARTING, State.RUNNING, State.SUCCEEDED):
                    store.jobs.move(job.id, state, "for the test", time.time(), started=time.time())
            bus.notify(Topic.JOBS)
