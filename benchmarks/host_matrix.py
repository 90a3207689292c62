"""Every fault of a host at every moment of a job over three hosts: what it costs, and what is promised.

    sudo python benchmarks/host_matrix.py

The hosts are those of `host_bed.py`: network namespaces, each with an ssh server. `edt-launch` is on the
first one, a worker on each of three others; the second of these is hit. The moments are:

- `step`: in a step.
- `resize`: a moment after one more worker was allocated.
- `checkpoint`: just after a checkpoint, where one is written after every step.
- `rendezvous`: a moment after the worker of the last host was killed.

`slow and lossy` is a host whose packets get lost, one in twenty, at 100 Mbit/s; it may not count as lost.

After that the job has to train on, end, and have the bits of the undisturbed job, each sample once, and no
process left on any host. The table has the longest time without a micro-batch after the fault. The exit code
is 1 if a promise is broken. After `--minutes`, Ctrl-C or SIGTERM the table is made of what there is.
"""

import argparse
import contextlib
import functools
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import host_bed
import psutil
import strikes
from attacked import journals
from chaos_jobs import TRAIN, OnFirstHost, OverHosts
from disturbed import history
from elastic_jobs import MARK, POLL, NotResizedError, end
from host_bed import HostBed

SAMPLES = 100
"""In the dataset of train.py."""

HIT, OTHER = "h2", "h3"

FLAP = 2.0
"""Seconds for which a cable is out, and in, in turns."""

FLAPS = 4

BROKEN = "BROKEN"

END_LIMIT = 60.0
"""Seconds after the job's end in which every process on the hosts has to be gone, four leases of agents."""


class FixedHosts(OverHosts):
    """A job whose workers are spread over the hosts in their order.

    Args:
        disk: its output directory, if each host has one of its own.
    """

    def __init__(self, place: OnFirstHost, options: list[object], disk: Path | None) -> None:
        super().__init__(place, options)
        self._has_own_disks = disk is not None

    @property
    def slots(self) -> int:
        """Those of the newest allocation."""
        return self._slots

    @property
    def events(self) -> Path:  # noqa: D102
        return (
            self._bed.disk_of(self._bed.names[0]) / "events.jsonl" if self._has_own_disks else super().events
        )

    def hosts(self, size: int) -> list[str]:  # noqa: D102
        hosts = self._bed.names[1:]
        counts = {host: len(range(number, size, len(hosts))) for number, host in enumerate(hosts)}
        return [f"{host}:{count}" for host, count in counts.items() if count]


@dataclass
class Stage:
    """A job that trains on the hosts."""

    bed: HostBed
    job: FixedHosts
    folder: Path
    limit: float

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition.

        Raises:
            NotResizedError: the job has ended, or the limit is reached.
        """
        deadline = time.monotonic() + self.limit
        while not condition():
            if ended := self.job.ended():
                raise NotResizedError(f"ended with {ended} before it did {what}")
            if time.monotonic() > deadline:
                raise NotResizedError(f"did not {what} within {self.limit:g} s")
            time.sleep(POLL)

    def size(self) -> int:
        """Workers of the newest world."""
        worlds = self.job.told("world")
        return worlds[-1]["size"] if worlds else 0

    def until_size(self, size: int) -> None:
        """Wait until so many workers train."""
        self.wait_for(lambda: self.size() == size, f"reach {size} workers")

    def times(self) -> list[float]:
        """When micro-batches were begun."""
        return sorted(row["time"] for row in journals.rows(self.folder.glob("samples.*.jsonl")))

    def trains_on(self) -> None:
        """Wait until the job has trained for some steps."""
        before = len(self.times())
        self.wait_for(lambda: len(self.times()) > before + 60, "train on")

    def worker(self, host: str) -> psutil.Process:
        """The newest worker of a host."""
        own = {process.pid: process for process in self.bed.processes(host)}
        return next(own[e["pid"]] for e in reversed(self.job.told("ready")) if e.get("pid") in own)


@dataclass(frozen=True)
class Fault:
    """What happens, what the job has to come to afterwards, and what is prepared before it starts.

    Attributes:
        strike: hits the job.
        mend: undoes it, after the job has trained on.
        begins_with: workers at first.
        ends_with: workers that the job has to have again, or to get, in the end; None if they do not matter.
        prepare: the hosts.
        small_disk: the host that has a small disk; then no host shares one.
        keeps_hosts: whether no host may count as lost.
    """

    strike: Callable[[Stage], None]
    mend: Callable[[Stage], None] = lambda stage: None
    begins_with: int = 3
    ends_with: int | None = None
    prepare: Callable[[HostBed], None] = lambda bed: None
    small_disk: str | None = None
    keeps_hosts: bool = False


def flap(stage: Stage) -> None:
    for _ in range(FLAPS):
        stage.bed.unplug(HIT)
        time.sleep(FLAP)
        stage.bed.plug(HIT)
        time.sleep(FLAP)


def come_back(stage: Stage) -> None:
    stage.bed.unplug(HIT)
    strikes.later(6.0, lambda: stage.bed.plug(HIT))


def add_host(stage: Stage) -> None:
    stage.job.resize(stage.job.slots + 1)


def part(one: str, other: str, is_one_way: bool = False) -> Callable[[Stage], None]:
    return lambda stage: stage.bed.part(one, other, is_one_way) and None


def join(one: str, other: str) -> Callable[[Stage], None]:
    return lambda stage: stage.bed.join(one, other)


def add_cards(bed: HostBed) -> None:
    for host in bed.names:
        bed.add_card(host, "docker0", "172.17.0.1")


def fill(stage: Stage) -> None:
    with contextlib.suppress(OSError), (stage.bed.disk_of(HIT) / "filling").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(2**16))


FAULTS: Mapping[str, Fault] = {
    "worker killed": Fault(lambda stage: stage.worker(HIT).kill()),
    "power off": Fault(lambda stage: stage.bed.power_off(HIT), lambda stage: stage.bed.plug(HIT)),
    "parted from launcher": Fault(part("h0", HIT), join("h0", HIT)),
    "parted from peer": Fault(part(HIT, OTHER), join(HIT, OTHER)),
    "one way to peer": Fault(part(HIT, OTHER, is_one_way=True), join(HIT, OTHER)),
    "frozen": Fault(lambda stage: stage.bed.freeze(HIT), lambda stage: stage.bed.freeze(HIT, False)),
    "flapping": Fault(flap),
    "gone and back": Fault(come_back, ends_with=3),
    "added": Fault(add_host, begins_with=2, ends_with=3),
    "added, other host key": Fault(add_host, begins_with=2, prepare=lambda bed: bed.forge_key(OTHER)),
    "useless card first": Fault(lambda stage: None, prepare=add_cards),
    "ports blocked": Fault(lambda stage: stage.bed.block_ports(HIT)),
    "full disk": Fault(fill, small_disk=HIT),
    "slow and lossy": Fault(lambda stage: stage.bed.impair(HIT, 5, "100mbit"), keeps_hosts=True),
}


def in_step(stage: Stage) -> None:
    pass


def in_resize(stage: Stage) -> None:
    add_host(stage)
    time.sleep(0.3)


def at_checkpoint(stage: Stage) -> None:
    before = len(stage.job.told("checkpointed"))
    stage.wait_for(lambda: len(stage.job.told("checkpointed")) > before, "write a checkpoint")


def in_rendezvous(stage: Stage) -> None:
    last = stage.bed.names[stage.size()]
    stage.worker(last).kill()
    time.sleep(0.1)


MOMENTS: Mapping[str, Callable[[Stage], None]] = {
    "step": in_step,
    "resize": in_resize,
    "checkpoint": at_checkpoint,
    "rendezvous": in_rendezvous,
}


@functools.cache
def undisturbed(epochs: int) -> str:
    """The digest of the same training in one process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TRAIN), folder, "--epochs", str(epochs)]
        variables = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=variables)
        return str(json.loads((Path(folder) / "final.json").read_text())["digest"])


@contextlib.contextmanager
def stage(folder: Path, fault: Fault, moment: str, limit: float) -> Iterator[Stage]:
    """A job on its hosts, not started yet; nothing is left of both in the end."""
    mark = uuid.uuid4().hex
    disk = folder / "out" if fault.small_disk else None
    with host_bed.hosts(folder, 4, disk=disk, small=fault.small_disk) as bed:
        fault.prepare(bed)
        variables = {**bed.variables(), MARK: mark, "OMP_NUM_THREADS": "1"}
        options = ["--checkpoint-interval", 0 if moment == "checkpoint" else 0.5]
        place = OnFirstHost(folder, [str(folder), "--delay", "0.05"], variables, bed)
        try:
            yield Stage(bed, FixedHosts(place, options, disk), folder, limit)
        finally:
            end(mark)


def run(name: str, moment: str, limit: float) -> tuple[float, list[str]]:
    """The pause after a fault at a moment, in seconds, and the promises that were broken."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder), fault, moment, limit) as on:
        on.job.start(fault.begins_with)
        on.until_size(fault.begins_with)
        on.trains_on()
        MOMENTS[moment](on)
        at = time.monotonic()
        fault.strike(on)
        on.trains_on()
        pause = longest_gap(on.times(), at)
        fault.mend(on)
        if fault.ends_with is not None:
            on.until_size(fault.ends_with + (moment == "resize"))
        on.trains_on()
        for file in ("end", "hurry"):
            (on.folder / file).touch()
        deadline = time.monotonic() + limit
        while (ended := on.job.ended()) is None:
            if time.monotonic() > deadline:
                raise NotResizedError(f"did not end within {limit:g} s")
            time.sleep(POLL)
        broken = [] if ended == "exit 0" else [f"ended with {ended}"]
        final = json.loads((on.folder / "final.json").read_text())
        if final["digest"] != undisturbed(final["epochs"]):
            broken.append("the weights are not those of the undisturbed job")
        broken += history.mistakes(history.read(on.folder), SAMPLES, final["epochs"])
        lost = on.job.told("host_unreachable") if fault.keeps_hosts else []
        broken += [f"{event['host']} counted as lost: {event['reason']}" for event in lost]
        left = [process for host in on.bed.names for process in on.bed.processes(host)]
        _, alive = psutil.wait_procs(left, timeout=END_LIMIT)
        return pause, broken + [f"left behind: {process}" for process in alive]


def longest_gap(times: list[float], at: float) -> float:
    """The longest time without a micro-batch from the last one before a moment on."""
    begun = max((moment for moment in times if moment < at), default=at)
    rest = [begun, *(moment for moment in times if moment >= at)]
    return max((b - a for a, b in itertools.pairwise(rest)), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Every fault of a host at every moment of a job.")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--moments", nargs="+", choices=MOMENTS, default=list(MOMENTS))
    parser.add_argument("--limit", type=float, default=90.0, help="seconds until a job counts as stuck")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no job after so many")
    args = parser.parse_args()
    if reason := host_bed.missing():
        parser.error(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    cells: dict[tuple[str, str], str] = {}
    started = time.monotonic()
    try:
        for moment, name in itertools.product(args.moments, args.faults):
            began = time.monotonic()
            if began - started > 60 * args.minutes:
                break
            try:
                pause, broken = run(name, moment, args.limit)
            except NotResizedError as error:
                pause, broken = 0.0, [str(error)]
            cells[name, moment] = BROKEN if broken else f"{pause:.1f}"
            what = f"{BROKEN}: {'; '.join(broken)}" if broken else f"kept, {pause:.1f} s without training"
            print(f"{name}, {moment}: {what} ({time.monotonic() - began:.0f} s)", flush=True)
    finally:  # what there is, of a run that is broken off, too
        is_broken = BROKEN in cells.values()
        print(f"\nSeconds without a micro-batch\n\n{'':24}" + "".join(f"{each:>12}" for each in args.moments))
        for name in args.faults:
            print(f"{name:24}" + "".join(f"{cells.get((name, each), '-'):>12}" for each in args.moments))
        kept = sum(cell != BROKEN for cell in cells.values())
        print(f"\n{kept} of {len(cells)} cells kept in {time.monotonic() - started:.0f} s")
    sys.exit(1 if is_broken else 0)


if __name__ == "__main__":
    main()
