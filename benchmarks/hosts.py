"""How long training stands still when a host fails: EDT, plain Horovod elastic and torchrun, in turns.

    sudo python benchmarks/hosts.py --rounds 5

The hosts are network namespaces of this machine, each with its own ssh server, host name and network card
(`host_bed.py`); nothing is shared but the disk and the processors. One host has the launcher, three have one
worker each. In every round each system trains the same as in `benchmarks/resize.py`, and one fault comes:

- `worker killed`: SIGKILL to the worker of the second host.
- `powered off`: its cable is pulled, and all its processes are killed, so that nobody is told.
- `cable pulled`: its processes go on.
- `frozen`: SIGSTOP to all its processes.
- `parted`: the second host and the third do not reach each other any more; both reach the launcher.

`pause` is the longest time without a step of the workers that go on, less the median step time. A system that
ends, or does not train within `--limit` seconds, is reported as such. torchrun has one agent on each of the
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
from collections.abc import Callable
from pathlib import Path
from statistics import median

import host_bed
from elastic_jobs import MARK, POLL, SCRIPTS, NotResizedError, Place, end, exit_text, wait_for
from host_bed import HostBed

HOSTS = ("h1", "h2", "h3")
CARD = "eth0"

FAULTS: dict[str, Callable[[HostBed, int], None]] = {
    "worker killed": lambda bed, worker: bed.kill(worker),
    "powered off": lambda bed, worker: bed.power_off("h2"),
    "cable pulled": lambda bed, worker: bed.unplug("h2"),
    "frozen": lambda bed, worker: bed.freeze("h2"),
    "parted": lambda bed, worker: bed.part("h2", "h3"),
}


class HostsJob:
    """A job of one system over the hosts of a bed."""

    def __init__(self, system: str, place: Place, bed: HostBed) -> None:
        self._place = place
        self._bed = bed
        self._system = system
        options = place.script_options
        listed = ",".join(f"{host}:1" for host in HOSTS)
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

    def ended(self) -> str | None:
        """How it ended; of torchrun, the agent of the first host."""
        first = self._processes.get("h0") or self._processes["h1"]
        return exit_text(first.poll())


def run(system: str, fault: str, args: argparse.Namespace) -> float | str:
    """The pause after a fault, in seconds; or what went wrong."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as name, host_bed.hosts(Path(name), 4, CARD) as bed:
        variables = {**bed.variables(), MARK: mark, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        place = Place(Path(name), [name, "--delay", str(args.delay)], variables)
        job = HostsJob(system, place, bed)
        try:
            wait_for(lambda: trained(place, 3) >= args.steps, args.limit, job, "train on three hosts")
            victim = next(step.worker for step in place.steps() if bed.host_of(step.worker) == "h2")
            at = time.time()
            FAULTS[fault](bed, victim)
            others = {step.worker for step in place.steps()} - {victim}
            wait_for(
                lambda: any(s.time > at + 0.5 and s.size != 3 for s in place.steps()),
                args.limit,
                job,
                "go on",
            )
            time.sleep(20 * POLL)
            return pause(place, at, others)
        except NotResizedError as error:
            return str(error)
        finally:
            end(mark)


def trained(place: Place, size: int) -> int:
    """Steps that were done by a world of that size."""
    return len({step.number for step in place.steps() if step.size == size})


def pause(place: Place, at: float, workers: set[int]) -> float:
    """The longest time without a step from just before the fault on, less the median step time.

    Workers of a system that starts all of them again are others than before.
    """
    times = sorted(step.time for step in place.steps())
    before = [moment for moment in times if moment < at]
    ends = {step.number: step.time for step in place.steps() if step.time < at}
    usual = median(b - a for a, b in itertools.pairwise(ends[number] for number in sorted(ends)))
    rest = [before[-1], *(moment for moment in times if moment >= at)]
    return max(b - a for a, b in itertools.pairwise(rest)) - usual


def cell(outcomes: list[float | str]) -> str:
    """What came of the rounds, for the table."""
    good = sorted(outcome for outcome in outcomes if isinstance(outcome, float))
    bad = [outcome for outcome in outcomes if isinstance(outcome, str)]
    worst = good[math.ceil(0.99 * len(good)) - 1] if good else 0.0  # by rank: of fewer than 100, the longest
    times = f"p50 {median(good):.1f} s, p99 {worst:.1f} s of {len(good)}" if good else ""
    return "; ".join(filter(None, [times, f"{len(bad)} of {len(outcomes)}: {bad[0]}" if bad else ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description="How long training stands still when a host fails.")
    systems = ("EDT", "plain Horovod", "torchrun")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each system and fault")
    parser.add_argument("--systems", nargs="+", choices=systems, default=list(systems))
    parser.add_argument("--only", choices=FAULTS, help="one fault")
    parser.add_argument("--steps", type=int, default=40, help="steps before the fault")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds until a job counts as stuck")
    args = parser.parse_args()
    if reason := host_bed.missing():
        parser.error(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    faults = [args.only] if args.only else list(FAULTS)
    results: dict[tuple[str, str], list[float | str]] = {}
    for number, fault, system in itertools.product(range(1, args.rounds + 1), faults, args.systems):
        outcome = run(system, fault, args)
        results.setdefault((fault, system), []).append(outcome)
        shown = outcome if isinstance(outcome, str) else f"{outcome:.2f} s"
        print(f"round {number}, {fault}, {system}: {shown}", flush=True)
    print("\nTraining stands still\n")
    for (fault, system), outcomes in results.items():
        print(f"{fault:14} {system:14} {cell(outcomes)}")


if __name__ == "__main__":
    main()
