"""How long training stands still when a host fails: EDT, plain Horovod elastic and torchrun, in turns.

    sudo python benchmarks/hosts.py --rounds 5

The hosts are network namespaces of this machine, each with its own ssh server, host name and network card
(`host_bed.py`); nothing is shared but the disk and the processors. One host has the launcher, three have one
worker each. In every round each system trains the same as in `benchmarks/resize.py`, and one fault comes:

- `worker killed`: SIGKILL to the worker of the second host.
- `powered off`: its cable is pulled, and all its processes are killed, so that nobody is told.
- `cable pulled`: its processes go on.
- `cut from launcher`: the second host does not reach the host of the launcher any more, only the others; of
  torchrun, that of the rendezvous.
- `frozen`: SIGSTOP to all its processes.
- `parted`: the second host and the third do not reach each other any more; both reach the launcher.
- `back`: the cable is pulled, and put back after six seconds.

`noticed` is when EDT reports the first consequence. `pause` is the longest time without a step of the workers
that go on, less the median step time. `joined`, after `back`, is how long it takes from the cable until all
three hosts train. `redone` are the steps that are done again, in the worst round. A system that ends, or does
not train within `--limit` seconds, is reported as such. torchrun has one agent on each of the
three hosts, the rendezvous is on the first one, and its `last_call_timeout` is 1 s instead of 30 s. Plain
Horovod needs the same name of the network card on all hosts; here it is.
"""

import argparse
import itertools
import math
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import host_bed
from chaos_jobs import events
from elastic_jobs import MARK, POLL, SCRIPTS, NotResizedError, Place, Step, end, exit_text, wait_for
from host_bed import HostBed

HOSTS = ("h1", "h2", "h3")
CARD = "eth0"

AWAY = 6.0
"""Seconds for which a cable is pulled that is put back."""

BACK = "back"

CONSEQUENCES = ("failed", "lost", "host_unreachable", "ending", "world")
"""Events that show that a fault was noticed."""

FAULTS: dict[str, Callable[[HostBed, int, str], None]] = {
    "worker killed": lambda bed, worker, first: bed.kill(worker),
    "powered off": lambda bed, worker, first: bed.power_off("h2"),
    "cable pulled": lambda bed, worker, first: bed.unplug("h2"),
    "cut from launcher": lambda bed, worker, first: bed.part(first, "h2") and None,
    "frozen": lambda bed, worker, first: bed.freeze("h2"),
    "parted": lambda bed, worker, first: bed.part("h2", "h3") and None,
    BACK: lambda bed, worker, first: bed.unplug("h2"),
}
"""What happens to the worker of the second host, or to that host; `first` is the host of the launcher."""


@dataclass(frozen=True)
class Outcome:
    """What a fault has cost: seconds, and steps that were done again; see above."""

    pause: float
    redone: int
    noticed: float | None = None
    joined: float | None = None


class HostsJob:
    """A job of one system over the hosts of a bed."""

    def __init__(self, system: str, place: Place, bed: HostBed) -> None:
        self._place = place
        self._bed = bed
        self._system = system
        options = place.script_options
        listed = ",".join(f"{host}:1" for host in HOSTS)
        script: tuple[object, ...]
        commands: Mapping[str, tuple[object, ...]]
        if system == "EDT":
            script = (SCRIPTS / "train_edt.py", *options)
            bounds = ("--min-np", 1, "--max-np", 3, "-H", listed, "--output-dir", place.folder / "out")
            commands = {"h0": (sys.executable, "-m", "edt_launch.launcher.command", *bounds, *script)}
        elif system == "plain Horovod":
            discovery = place.write("discover", "#!/bin/sh\n" + "".join(f"echo {h}:1\n" for h in HOSTS))
            discovery.chmod(0o755)
            bounds = ("-np", 3, "--min-np", 1, "--max-np", 3, "--network-interface", CARD)
            horovodrun = (Path(sys.executable).with_name("horovodrun"), *bounds)
            script = (sys.executable, SCRIPTS / "train_horovod.py", *options)
            commands = {"h0": (*horovodrun, "--host-discovery-script", discovery, *script)}
        else:
            rendezvous = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "h1:29500", "--rdzv-id", "hosts")
            limits = ("--rdzv-conf", "last_call_timeout=1", "--max-restarts", 100)
            nodes = ("-m", "torch.distributed.run", "--nnodes", "1:3", "--nproc-per-node", 1)
            script = (SCRIPTS / "train_torchrun.py", *options)
            command = (sys.executable, *nodes, *rendezvous, *limits)
            commands = {host: (*command, "--local-addr", host, *script) for host in HOSTS}
        self._processes = {
            host: place.spawn(f"job.{host}", *bed.on(host, [str(word) for word in command]))
            for host, command in commands.items()
        }

    def start(self, size: int) -> None:
        """Nothing: it runs."""

    def resize(self, size: int) -> None:
        """Nothing: the hosts stay."""

    def leavers(self) -> list[str]:
        """Nobody."""
        return []

    @property
    def first(self) -> str:
        """The host of the launcher; of torchrun, that of the rendezvous."""
        return next(iter(self._processes))

    def ended(self) -> str | None:
        """How it ended; of torchrun, the agent of the first host."""
        return exit_text(self._processes[self.first].poll())

    def noticed(self, at: float) -> float | None:
        """Seconds from a moment to the first thing that EDT has told about it; None of others."""
        told = events(self._place.folder / "out" / "events.jsonl", *CONSEQUENCES)
        return min((event["time"] - at for event in told if event["time"] > at), default=None)


def run(system: str, fault: str, args: argparse.Namespace) -> Outcome | str:
    """What a fault has cost, or what went wrong."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as name, host_bed.hosts(Path(name), 4, CARD) as bed:
        variables = {**bed.variables(), MARK: mark, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        place = Place(Path(name), [name, "--delay", str(args.delay)], variables)
        job = HostsJob(system, place, bed)
        try:
            wait_for(lambda: trained(place) >= args.steps, args.start_limit, job, "train on three hosts")
            victim = next(step.worker for step in place.steps() if bed.host_of(step.worker) == "h2")
            before = {step.worker for step in place.steps()}
            at = time.time()
            FAULTS[fault](bed, victim, job.first)
            joined = None
            if fault == BACK:
                time.sleep(AWAY)
                bed.plug("h2")
                joined = joins(place, job, time.time(), args.limit)
            go_on = partial(goes_on, place, at, before)
            wait_for(go_on, args.limit, job, "go on")
            time.sleep(20 * POLL)
            return replace(cost(place.steps(), at), noticed=job.noticed(at), joined=joined)
        except NotResizedError as error:
            return str(error)
        finally:
            end(mark)


def trained(place: Place) -> int:
    """Steps that all hosts have done."""
    return len({step.number for step in place.steps() if step.size == len(HOSTS)})


def goes_on(place: Place, at: float, before: Collection[int]) -> bool:
    """Whether other workers, or fewer, train than before a moment."""
    return any(
        step.time > at + 0.5 and (step.size != len(HOSTS) or step.worker not in before)
        for step in place.steps()
    )


def joins(place: Place, job: HostsJob, back: float, limit: float) -> float:
    """Wait until all hosts train again; seconds from when they could."""

    def times() -> list[float]:
        return [step.time for step in place.steps() if step.time > back and step.size == len(HOSTS)]

    wait_for(lambda: bool(times()), limit, job, "take the host back")
    return min(times()) - back


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


def cell(outcomes: Sequence[Outcome | str]) -> str:
    """What came of the rounds, for the table."""
    good = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
    bad = [outcome for outcome in outcomes if isinstance(outcome, str)]
    noticed = [outcome.noticed for outcome in good if outcome.noticed is not None]
    parts = [f"noticed {spread(noticed)}"] if noticed else []
    if good:
        parts.append(f"pause {spread([outcome.pause for outcome in good])}")
        joined = [outcome.joined for outcome in good if outcome.joined is not None]
        parts += [f"joined {spread(joined)}"] if joined else []
        parts.append(f"redone {max(outcome.redone for outcome in good)}, {len(good)} rounds")
    return "; ".join([*parts, *([f"{len(bad)} of {len(outcomes)}: {bad[0]}"] if bad else [])])


def spread(times: Sequence[float]) -> str:
    """Median and 99th percentile, by rank: of fewer than 100, that is the longest."""
    return f"p50 {median(times):.1f} s, p99 {sorted(times)[math.ceil(0.99 * len(times)) - 1]:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description="How long training stands still when a host fails.")
    systems = ("EDT", "plain Horovod", "torchrun")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each system and fault")
    parser.add_argument("--systems", nargs="+", choices=systems, default=list(systems))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--steps", type=int, default=40, help="steps before the fault")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds until a job counts as stuck")
    parser.add_argument("--start-limit", type=float, default=300.0, help="the same before the fault")
    args = parser.parse_args()
    if reason := host_bed.missing():
        parser.error(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    results: dict[tuple[str, str], list[Outcome | str]] = {}
    try:
        for number, fault, system in itertools.product(range(1, args.rounds + 1), args.faults, args.systems):
            outcome = run(system, fault, args)
            results.setdefault((fault, system), []).append(outcome)
            print(f"round {number}, {fault}, {system}: {cell([outcome])}", flush=True)
    finally:  # what there is, of a run that is broken off, too
        print("\nTraining stands still\n")
        for (fault, system), outcomes in results.items():
            print(f"{fault:18} {system:14} {cell(outcomes)}")


if __name__ == "__main__":
    main()
