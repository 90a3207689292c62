"""How long training pauses on a Ray cluster whose nodes change: EDT and Ray Train's elastic mode, in turns.

    pip install 'ray[train]'
    python benchmarks/ray_train.py --rounds 3

Each run starts a cluster of two or three nodes on this machine, with one slot each. Both systems train the
same model on the same data (`benchmarks/resize/`), with one worker on each node and steps of 50 ms:

- `grow`: a third node joins.
- `drain`: Ray is told that the third node is about to be preempted. Its power fails 30 seconds later.
- `lost`: the power of the third node fails: all its processes are killed.

To resize, Ray Train starts all workers again from the last checkpoint. Its script saves a checkpoint every
ten steps and continues with the next step. A checkpoint at a notice of preemption would gain nothing: Ray
Train goes on training on the node until the node is gone. Two settings favour Ray Train: it looks for new
nodes every five seconds instead of every minute, and Ray notices a lost node within about a second instead
of half a minute.

- `pause`: the longest time without a step, less the median step time.
- `in effect`: time from the event to the first step in a world of the new size.
- `repeated`: steps that were trained again. In both systems the batch of a step is the same 96 samples.
- `lost`: steps, and therefore samples, that were left out.
"""

import argparse
import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from elastic_jobs import MARK, SCRIPTS, NotResizedError, Place, Step, end, exit_text, wait_for
from ray_nodes import RayNodes, missing, ray_nodes

NOTICE = 30.0
"""Seconds from the notice of a preemption to the preemption."""

EVENTS: dict[str, tuple[int, int, Callable[[RayNodes], object]]] = {
    "grow": (2, 3, lambda nodes: nodes.add(3)),
    "drain": (3, 2, lambda nodes: nodes.drain(3)),
    "lost": (3, 2, lambda nodes: nodes.power_off(3)),
}
"""Size before and after, and what happens to the cluster."""


class RayJob:
    """A job of one system on a Ray cluster."""

    def __init__(self, system: str, place: Place, address: str) -> None:
        if system == "EDT":
            bounds = ("--min-np", 1, "--max-np", 4, "--ray", address, "--output-dir", place.folder / "out")
            script = (SCRIPTS / "train_edt.py", *place.script_options)
            command = (sys.executable, "-m", "edt_launch.launcher.command", *bounds, *script)
        else:
            command = (sys.executable, SCRIPTS / "train_ray.py", *place.script_options)
        self._process: subprocess.Popen[bytes] = place.spawn("job", *command)

    def ended(self) -> str | None:
        """How the job ended, or None while it runs."""
        return exit_text(self._process.poll())


@dataclass(frozen=True)
class Resized:
    """The cost of a resize, in seconds and in steps."""

    pause: float
    in_effect: float
    repeated: int
    lost: int

    def __str__(self) -> str:
        steps = f"{self.repeated} steps repeated, {self.lost} lost"
        return f"pause {self.pause:.2f} s, in effect after {self.in_effect:.2f} s, {steps}"


def measure(steps: list[Step], at: float, size: int) -> Resized:
    """The cost of a resize to `size` that was caused at the unix time `at`."""
    before = sorted({step.number: step.time for step in steps if step.time < at}.values())
    usual = median(later - earlier for earlier, later in itertools.pairwise(before))
    moments = [before[-1], *sorted(step.time for step in steps if step.time >= at)]
    pause = max(later - earlier for earlier, later in itertools.pairwise(moments)) - usual
    new = [step for step in steps if step.time >= at and step.size == size]
    first = min(step.time for step in new)
    old = [step.number for step in steps if step.time < first and step.size != size]
    done = {step.number for step in steps}
    again = {step.number for step in new} & set(old)
    return Resized(pause, first - at, len(again), max(done) - len(done))


def run(system: str, event: str, args: argparse.Namespace) -> Resized | str:
    """The cost of an event, or what went wrong."""
    before, after, happen = EVENTS[event]
    mark = uuid.uuid4().hex
    with ray_nodes(before) as nodes, tempfile.TemporaryDirectory() as name:
        variables = {**os.environ, MARK: mark, "RAY_ADDRESS": nodes.address}
        place = Place(Path(name), [name, "--delay", str(args.delay)], variables)
        job = RayJob(system, place, nodes.address)

        def trained(size: int) -> int:
            return len({step.number for step in place.steps() if step.size == size})

        preemption = threading.Timer(NOTICE, nodes.power_off, (3,))
        try:
            wait_for(lambda: trained(before) >= 40, args.limit, job, f"train with {before} workers")
            at = time.time()
            happen(nodes)
            if event == "drain":
                preemption.start()
            wait_for(lambda: trained(after) >= 40, args.limit, job, f"train with {after} workers")
            return measure(place.steps(), at, after)
        except NotResizedError as error:
            log = (Path(name) / "job.log").read_text(errors="replace")
            return f"{error}: {log[-args.tail :]}" if args.tail else str(error)
        finally:
            preemption.cancel()
            if preemption.is_alive():
                preemption.join()
            end(mark)


def cell(outcomes: list[Resized | str]) -> str:
    """The table's cell for an event and a system."""
    good = [outcome for outcome in outcomes if isinstance(outcome, Resized)]
    bad = [outcome for outcome in outcomes if isinstance(outcome, str)]
    texts = [f"{len(bad)} of {len(outcomes)}: {bad[0]}"] if bad else []
    if good:
        pauses = sorted(each.pause for each in good)
        effects = sorted(each.in_effect for each in good)
        repeated = [each.repeated for each in good]
        lost = max(each.lost for each in good)
        spread = f"pause {median(pauses):.2f} s ({pauses[0]:.2f} to {pauses[-1]:.2f})"
        steps = f"{min(repeated)} to {max(repeated)} steps repeated, {lost} lost"
        texts.insert(0, f"{spread}, in effect after {median(effects):.1f} s, {steps}")
    return "; ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description="How long training pauses on a Ray cluster.")
    systems = ("EDT", "Ray Train")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system and event")
    parser.add_argument("--systems", nargs="+", choices=systems, default=list(systems))
    parser.add_argument("--only", choices=EVENTS, help="one event")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds until a job counts as stuck")
    parser.add_argument("--tail", type=int, default=0, help="characters of a stuck job's log to show")
    args = parser.parse_args()
    if reason := missing():
        parser.error(reason)
    if "Ray Train" in args.systems and importlib.util.find_spec("tensorboardX") is None:
        parser.error("Ray Train needs more than Ray: pip install 'ray[train]'")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    results: dict[tuple[str, str], list[Resized | str]] = {}
    events = [args.only] if args.only else list(EVENTS)
    for number, event, system in itertools.product(range(1, args.rounds + 1), events, args.systems):
        outcome = run(system, event, args)
        results.setdefault((event, system), []).append(outcome)
        print(f"round {number}, {event}, {system}: {outcome}", flush=True)
    print()
    for (event, system), outcomes in results.items():
        print(f"{event:6} {system:10} {cell(outcomes)}")


if __name__ == "__main__":
    main()
