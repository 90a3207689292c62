"""How long training stands still when a host fails: EDT beside what is promised, plain Horovod and torchrun.

    sudo python benchmarks/hosts.py --rounds 20 --systems edt

The hosts are network namespaces of this machine, each with its own ssh server, host name and network card
(`host_bed.py`); nothing is shared but the disk and the processors. One host has the launcher, three have one
worker each. Each system trains the same as in `benchmarks/resize.py`, and the second host is hit:

- `worker killed`: SIGKILL to its worker.
- `powered off`: its cable is pulled, and all its processes are killed, so that nobody is told.
- `cable pulled`: its processes go on; the cable is put back after six seconds. `back` is what follows.
- `cut from launcher`: it does not reach the host of the launcher any more, only the others; of torchrun, that
  of the rendezvous.
- `frozen`: SIGSTOP to all its processes.
- `parted`: it and the third host do not reach each other any more; both reach the launcher.
- `launcher killed`: SIGKILL to `edt-launch`, which is started again by the same command at once; to
  `horovodrun`, or the torchrun of the first host, which nobody starts again.
- `service's launcher killed`: the job is one of a service, which starts its launcher again.
- `service's host lost`: that host is powered off with service and launcher, and the service is started on
  another one, with the same database and folder.
- `host added`: what it costs the others that the host is used again, after one of the faults above.

An EDT job goes through all faults of all rounds: after each, the network is mended, and the host leaves the
allocation and comes again. Other systems have a new job for each fault.

`noticed` is when EDT reports the first consequence. `pause` is the longest time without a step of the workers
that go on, less the median step time. `again` is the time until all three train, from when the host is in the
allocation or has its cable again, and `joined` the same from the end of the slot's suspension. `redone` are
steps that are done again. A system that ends, or does not train within `--limit` seconds, is reported.
After `--minutes`, Ctrl-C or SIGTERM the table is made of the rounds that there are.
"""

import argparse
import itertools
import math
import signal
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import host_bed
from elastic_jobs import MARK, POLL, NotResizedError, Place, Step, end, wait_for
from host_bed import HostBed
from hosts_jobs import CARD, FIRST, HOSTS, PEERS, STANDBY, ByHand, HostsJob, InPool
from strikes import later

AWAY = 6.0
"""Seconds for which a cable is pulled that is put back."""

CONSEQUENCES = ("failed", "lost", "host_unreachable", "ending", "world")
"""Events that show that a fault was noticed."""

PULLED, BACK, ADDED = "cable pulled", "back", "host added"


@dataclass(frozen=True)
class Scene:
    """A job that trains on the hosts; `victim` is the worker of the second one."""

    bed: HostBed
    place: Place
    job: HostsJob
    limit: float
    victim: int = 0

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition.

        Raises:
            NotResizedError: the job has ended, or the limit is reached.
        """
        wait_for(condition, self.limit, self.job, what)

    def start_again(self) -> None:
        """Start what was killed, as its user would."""
        self.job.start()

    def lose_first_host(self) -> None:
        """Power off the host of the service, and start that elsewhere."""
        self.bed.power_off(self.job.first)
        self.job.start()


def _nothing(scene: Scene) -> None:
    pass


@dataclass(frozen=True)
class Fault:
    """What happens, how it is mended, and what is promised of it."""

    strike: Callable[[Scene], object]
    mend: Callable[[Scene], object] = _nothing
    promised: str = ""
    is_service: bool = False


def _kill_launcher(scene: Scene, *, starts_again: bool) -> None:
    scene.bed.kill(scene.job.launcher())
    if starts_again:
        scene.start_again()


def _pull_cable(scene: Scene) -> None:
    scene.bed.unplug("h2")
    later(AWAY, lambda: scene.bed.plug("h2"))


FAULTS: Mapping[str, Fault] = {
    "worker killed": Fault(
        lambda on: on.bed.kill(on.victim), promised="noticed 0.3 s, pause 0.6 s, redone 1"
    ),
    "powered off": Fault(
        lambda on: on.bed.power_off("h2"), lambda on: on.bed.plug("h2"), "noticed 4 s, pause 6 s, redone 1"
    ),
    PULLED: Fault(_pull_cable, promised="noticed 4 s, pause 6 s, redone 1"),
    "cut from launcher": Fault(
        lambda on: on.bed.part(on.job.first, "h2"),
        lambda on: on.bed.join(on.job.first, "h2"),
        "noticed 4 s, pause 6 s, redone 1",
    ),
    "frozen": Fault(
        lambda on: on.bed.freeze("h2"), lambda on: on.bed.freeze("h2", False), "noticed 4 s, redone 1"
    ),
    "parted": Fault(
        lambda on: on.bed.part("h2", "h3"),
        lambda on: on.bed.join("h2", "h3"),
        "noticed 10 s, pause 12 s, redone 1",
    ),
    "launcher killed": Fault(partial(_kill_launcher, starts_again=True), promised="redone: 1 checkpoint"),
    "service's launcher killed": Fault(
        partial(_kill_launcher, starts_again=False), promised="redone: 1 checkpoint", is_service=True
    ),
    "service's host lost": Fault(
        Scene.lose_first_host,
        lambda on: on.bed.plug(STANDBY if on.job.first == FIRST else FIRST),
        "redone: 1 checkpoint",
        is_service=True,
    ),
}

FOLLOWING = {BACK: "joined 5 s, redone 0", ADDED: "redone 0"}
"""What is measured after a fault, and what is promised of it."""


@dataclass(frozen=True)
class Outcome:
    """What a fault has cost: seconds, and steps that were done again; see above."""

    pause: float
    redone: int
    noticed: float | None = None
    again: float | None = None
    joined: float | None = None


@contextmanager
def scene(job: Callable[[Place, HostBed], HostsJob], args: argparse.Namespace) -> Iterator[Scene]:
    """A job that has been started; nothing is left of it and its hosts in the end."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as name, host_bed.hosts(Path(name), 5, CARD) as bed:
        variables = {**bed.variables(), MARK: mark, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        place = Place(Path(name), [name, "--delay", str(args.delay)], variables)
        on = Scene(bed, place, job(place, bed), args.limit)
        try:
            on.job.start()
            if isinstance(on.job, InPool):
                on.until(on.job.is_serving, "serve")
                on.job.submit()
            yield on
        finally:
            end(mark)


def measure(on: Scene, name: str, args: argparse.Namespace) -> Iterator[tuple[str, Outcome]]:
    """What a fault, and what follows it, has cost.

    Raises:
        NotResizedError: the job has ended, or does not do what it has to.
    """
    forget(on.place)
    wait_for(lambda: trained(on.place) >= args.steps, args.start_limit, on.job, "train on three hosts")
    before = {step.worker for step in on.place.steps()}
    victim = next(worker for worker in before if on.bed.host_of(worker) == "h2")
    at = time.time()
    FAULTS[name].strike(replace(on, victim=victim))
    back = at + AWAY if name == PULLED else math.inf
    on.until(partial(goes_on, on.place, at, back, before), "go on")
    time.sleep(5 * POLL)
    is_noticed = "noticed" in FAULTS[name].promised  # by a launcher that lives on
    yield name, replace(cost(on.place.steps(), at), noticed=noticed(on.job, at) if is_noticed else None)
    if name == PULLED:
        yield BACK, joins(on, back)
    FAULTS[name].mend(on)


def readmit(on: Scene) -> Outcome:
    """Have all hosts used again, and what that has cost."""
    on.job.allocate(*(host for host in HOSTS if host != "h2"))
    on.until(lambda: is_last_size(on.place, len(HOSTS) - 1), "train without the host")
    forget(on.place)
    on.until(lambda: len(on.place.steps()) >= 2 * len(HOSTS), "train on")
    at = time.time()
    on.job.allocate(*HOSTS)
    return joins(on, at)


def forget(place: Place) -> None:
    """Empty the records of steps."""
    for file in place.folder.glob("trace.*"):
        file.write_bytes(b"")


def trained(place: Place) -> int:
    """Steps that all hosts have done."""
    return len({step.number for step in place.steps() if step.size == len(HOSTS)})


def is_last_size(place: Place, size: int) -> bool:
    """Whether so many workers have done the last step."""
    steps = sorted((step.time, step.size) for step in place.steps())
    return bool(steps) and steps[-1][1] == size


def goes_on(place: Place, at: float, back: float, before: Collection[int]) -> bool:
    """Whether other workers, or fewer, train than before a moment, or any since the host is back."""
    return any(
        step.time > back or (step.time > at and (step.size != len(HOSTS) or step.worker not in before))
        for step in place.steps()
    )


def noticed(job: HostsJob, at: float) -> float | None:
    """Seconds from a moment to the first thing that EDT has told about it; None of others."""
    told = (event["time"] for event in job.told(*CONSEQUENCES) if event["time"] > at)
    return min((moment - at for moment in told), default=None)


def joins(on: Scene, since: float) -> Outcome:
    """Wait until all hosts train again that could since a moment."""

    def times() -> list[float]:
        return [step.time for step in on.place.steps() if step.time > since and step.size == len(HOSTS)]

    on.until(lambda: bool(times()), "take the host back")
    time.sleep(5 * POLL)
    first = min(times())
    started = [event["time"] for event in on.job.told("started") if since < event["time"] < first]
    whole = cost(on.place.steps(), since)
    return replace(whole, again=first - since, joined=first - min(started) if started else None)


def cost(steps: Sequence[Step], at: float) -> Outcome:
    """The longest time without a step from just before a moment on, less the median step time.

    Workers of a system that starts all of them again are others than before.
    """
    times = sorted(step.time for step in steps)
    ends = {step.number: step.time for step in steps if step.time < at}
    usual = median(b - a for a, b in itertools.pairwise(ends[number] for number in sorted(ends)))
    rest = [max(moment for moment in times if moment < at), *(moment for moment in times if moment >= at)]
    length, began, ended = max((b - a, a, b) for a, b in itertools.pairwise(rest))
    last = max(step.number for step in steps if step.time <= began)
    first = min(step.number for step in steps if step.time >= ended)
    return Outcome(length - usual, max(0, last + 1 - first))


Results = dict[tuple[str, str], list[Outcome | str]]
"""What came of each round, by fault and system."""


def note(results: Results, system: str, fault: str, outcome: Outcome | str) -> None:
    """Add what came of a round, and print it."""
    results[fault, system].append(outcome)
    number = len(results[fault, system])
    print(f"{time.strftime('%H:%M:%S')} round {number}, {fault}, {system}: {cell([outcome])}", flush=True)


def run_edt(faults: Sequence[str], rounds: int, args: argparse.Namespace, results: Results) -> None:
    """All rounds of these faults, one after the other in one job; in another one after a failure."""
    left = [*faults] * rounds
    while left and time.monotonic() < args.deadline:
        with scene(InPool if FAULTS[left[0]].is_service else ByHand, args) as on:
            try:
                while left and time.monotonic() < args.deadline:
                    measured = fault = left.pop(0)
                    for name, outcome in measure(on, fault, args):
                        note(results, "edt", name, outcome)
                        measured = BACK
                    if isinstance(on.job, ByHand) and fault != "launcher killed":
                        measured = ADDED
                        note(results, "edt", ADDED, readmit(on))
            except NotResizedError as error:
                note(results, "edt", measured, str(error))


def run_peer(system: str, fault: str, args: argparse.Namespace, results: Results) -> None:
    """One fault in a job of its own."""
    with scene(PEERS[system], args) as on:
        try:
            for name, outcome in measure(on, fault, args):
                note(results, system, name, outcome)
        except NotResizedError as error:
            note(results, system, fault, str(error))


def cell(outcomes: Sequence[Outcome | str]) -> str:
    """What came of the rounds, for the table."""
    good = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    bad = [outcome for outcome in outcomes if isinstance(outcome, str)]
    parts = []
    for name in ("noticed", "pause", "again", "joined"):
        times = [getattr(outcome, name) for outcome in good if getattr(outcome, name) is not None]
        parts += [f"{name} {spread(times)}"] if times else []
    if good:
        parts.append(f"redone {max(outcome.redone for outcome in good)}")
    parts += [f"{len(bad)} of {len(outcomes)}: {bad[0]}"] if bad else []
    return "; ".join(parts)


def spread(times: Sequence[float]) -> str:
    """Median and 99th percentile, by rank: of fewer than 100, that is the longest."""
    if len(times) == 1:
        return f"{times[0]:.1f} s"
    return f"{median(times):.1f} s (p99 {sorted(times)[math.ceil(0.99 * len(times)) - 1]:.1f})"


def table(results: Results) -> str:
    """What came of all rounds, beside what is promised."""
    promised = {**{name: fault.promised for name, fault in FAULTS.items()}, **FOLLOWING}
    names = [name for name in promised if any(name == fault for fault, _ in results)]
    lines = ["| fault | promised | system | rounds | median (p99) |", "|---|---|---|---|---|"]
    for name in names:
        for (fault, system), outcomes in results.items():
            if fault == name:
                own = promised[name] if system == "edt" else ""
                lines.append(f"| {name} | {own} | {system} | {len(outcomes)} | {cell(outcomes)} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How long training stands still when a host fails.")
    systems = ("edt", *PEERS)
    parser.add_argument("--rounds", type=int, default=5, help="of each system and fault")
    parser.add_argument("--service-rounds", type=int, default=3, help="at most, of those of the service")
    parser.add_argument("--systems", nargs="+", choices=systems, default=list(systems))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--steps", type=int, default=20, help="steps before the fault")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds until a job counts as stuck")
    parser.add_argument("--start-limit", type=float, default=300.0, help="the same before the fault")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fault after so many")
    args = parser.parse_args()
    args.deadline = time.monotonic() + 60 * args.minutes
    if reason := host_bed.missing():
        parser.error(reason)
    return args


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    results: Results = defaultdict(list)
    is_of_service = {fault: FAULTS[fault].is_service for fault in args.faults}
    by_hand, in_pool = ([f for f in args.faults if is_of_service[f] is each] for each in (False, True))
    try:
        if "edt" in args.systems:
            run_edt(by_hand, args.rounds, args, results)
            run_edt(in_pool, min(args.rounds, args.service_rounds), args, results)
        peers = [system for system in args.systems if system in PEERS]
        for _, fault, system in itertools.product(range(args.rounds), by_hand, peers):
            if time.monotonic() < args.deadline:
                run_peer(system, fault, args, results)
    finally:  # what there is, of a run that is broken off, too
        print(f"\n{table(results)}")


if __name__ == "__main__":
    main()
