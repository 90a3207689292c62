"""A device is free when its worker is known to be gone, not when it was told to go."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.history import events
from edt_launch.service.app.home import JobDir
from edt_launch.service.jobs.loop.device_grant import DeviceGrant, as_held, devices_of, in_use
from edt_launch.service.jobs.loop.launching.launchers import Launchers
from edt_launch.service.jobs.loop.launching.sweeps import Found, Sweeps
from edt_launch.service.jobs.loop.observed import ObservedJob, ObservedLauncher
from edt_launch.service.jobs.loop.progress import LOST_GRACE, Device, JobProgress
from edt_launch.service.jobs.loop.step import as_job, has_processes
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

DEVICES = [(host, name) for host in ("near", "far") for name in "ab"]


class OneSweep(Sweeps):
    """Has ended at once; what is on the other machine cannot be seen."""

    def begin(self, job: str, train: Path, hosts: frozenset[str]) -> None:
        self.remote = frozenset({"far"} & hosts)

    def found(self, job: str) -> Found | None:
        return Found(remote=self.remote) if hasattr(self, "remote") else None

    def forget(self, job: str) -> None:
        self.__dict__.pop("remote", None)


class Room:
    """A job, its events, and its workers as they really are."""

    def __init__(self, paths: JobDir) -> None:
        self.paths, self.now, self.pid, self.is_alive = paths, 1000.0, 0, False
        self.launchers = Launchers(clock=lambda: self.now, sweeps=OneSweep())
        self.progress, self.grant = JobProgress(), DeviceGrant()
        self.present: dict[tuple[int, int], Device] = {}
        self.silent_since: dict[int, float] = {}
        self.number = 0
        self.begin()

    def note(self, event: events.Event) -> None:
        self.progress = self.progress.after([replace(event, time=self.now)])[0]

    def begin(self) -> None:
        self.kill()
        self.pid, self.number, self.is_alive = self.pid + 1, 0, True
        self.paths.launcher.write_text(json.dumps({"pid": self.pid, "started": 1.0}))
        self.look()
        self.note(events.Begun(self.pid, 1.0, 1, 9))

    def start(self, device: Device) -> None:
        if self.is_alive and device not in self.used():
            self.present[self.pid, self.number] = device
            self.note(events.Started(self.number, device[0], 0, device[1], 0))
            self.number += 1

    def mine(self) -> Iterable[tuple[int, Device]]:
        return [(number, device) for (pid, number), device in self.present.items() if pid == self.pid]

    def release(self, device: Device) -> None:
        for number, at in self.mine():
            if at == device and self.is_alive:
                del self.present[self.pid, number]
                self.note(events.Released(number, *device[:1], 0, device[1]))

    def lose(self, device: Device) -> None:
        for number, at in self.mine():
            if at == device and self.is_alive:
                self.note(events.Lost(number, *device[:1], 0, device[1]))

    def allocate(self, device: Device) -> None:
        """Only this device from now on: all other workers are told to go, and perhaps they never do."""
        if self.is_alive:
            left = as_held(self.used() - {device})
            self.grant = DeviceGrant(self.grant.generation + 1, as_held([device]), left)
            self.note(events.Following(self.grant.generation))

    def relaunch(self) -> None:
        if self.is_alive:
            self.note(events.Launched())

    def end(self, exit_code: int) -> None:
        if self.is_alive:
            self.note(events.Ended(exit_code))
        self.kill()

    def kill(self) -> None:
        """The launcher is gone; what is on this machine is ended by the sweep."""
        if self.is_alive:
            self.is_alive = False
            self.silent_since[self.pid] = self.now
            self.present = {key: at for key, at in self.present.items() if at[0] != "near"}
            self.look()

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def look(self) -> ObservedLauncher:
        if self.is_alive:
            self.launchers.forget("j1")
        return self.launchers.look("j1", self.paths, self.is_alive, self.grant, self.progress.run)

    def used(self) -> frozenset[Device]:
        """The input of the allocator."""
        record = JobRecord("j1", "ann", ("x",), 1, 4, 0.0, state=State.RUNNING)
        job = ObservedJob(record, self.grant, self.progress, self.look())
        seen = as_job(job, 0.0)
        found = devices_of((*seen.held, *seen.leaving)) if has_processes(job) else frozenset()
        assert not has_processes(job) or found >= devices_of(in_use(self.grant, job.run))
        return found


STEPS = st.one_of(
    st.tuples(st.sampled_from(["start", "release", "lose", "allocate"]), st.sampled_from(DEVICES)),
    st.tuples(st.sampled_from(["relaunch", "kill", "begin"])),
    st.tuples(st.just("end"), st.sampled_from([0, 1, 5, 143])),
    st.tuples(st.just("wait"), st.sampled_from([1.0, LOST_GRACE / 2, LOST_GRACE])),
)


@given(steps=st.lists(STEPS, max_size=25))
def test_a_device_is_used_until_its_worker_is_known_to_be_gone(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = JobDir(tmp_path_factory.mktemp("job"))
    paths.output.run.mkdir(parents=True)
    room = Room(paths)
    for name, *arguments in steps:
        getattr(room, str(name))(*arguments)
        for (pid, _), device in room.present.items():
            is_silent = room.now - room.silent_since.get(pid, room.now) >= LOST_GRACE
            assert is_silent or device in room.used()
    room.kill()
    room.wait(LOST_GRACE)
    assert room.used() == frozenset()
