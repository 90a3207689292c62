"""How long training stands still when a job is resized: EDT, plain Horovod elastic and torchrun, in turns.

    python benchmarks/resize.py --rounds 5

In every round each system runs the same training (model, data, optimizer; `benchmarks/resize/`) on this
machine: started with 2 workers and grown to 4, and started with 4 and shrunk to 2; and once started with 3,
of which one is killed with SIGKILL. A step sleeps for 50 ms
and computes next to nothing, so that more workers than cores hardly change how long it takes.

How the sizes are changed:

- EDT: `edt-launch --allocation`, the file is replaced.
- Plain Horovod: `horovodrun --host-discovery-script`, the script prints another number of slots.
- torchrun: one agent a worker. Two more agents are started, or the last two get SIGTERM. All workers restart,
  so the script saves a checkpoint every step. All settings are the defaults, but for two that are there to
  its advantage: TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which it may hang, and a `last_call_timeout`
  of 1 s instead of 30 s.

How it is measured: every worker writes down the time after each optimizer step, the step's number and the
size of the world that did it. All of them read the same clock.

- `pause`: from the last step at the old size to the first one at the new size, whichever workers did them,
  less the median step time before the request. When a system goes through other sizes in between, the time in
  which it trains at those is not counted; such runs are marked `not at once`.
- `in effect`: from the request to the end of the first step at the new size. Newcomers that get ready while
  the others train make the pause shorter, not this.
- `lost`: the training time that the resize has cost in all. That is the time from the last step before the
  request to the first one at the new size, less the median step time for every step of progress in between:
  the pause, work done again, and how much the newcomers' start has slowed the others down.
- `repeated`: step numbers done twice.

After a kill the pause is the longest time without a step of the others. Plain Horovod ends a job on one host
when one of its workers is killed; torchrun starts all workers again, the killed one, too.

What it does not show:

- Everything is on one machine. Starting is processor time, so with fewer cores than workers the other two
  pause for longer than on a larger machine, and EDT's newcomers slow the training down more.
- A real script imports and loads more than these do; `--startup` adds seconds to every start of a script.
- The batch of a step is constant in EDT and grows with the job in the other two.
- Equal step numbers say nothing about samples: `benchmarks/sampler.py` counts those. torchrun's script begins
  the epoch again after a resize, as it saves no position in it.
- A job that has not resized after `--limit` seconds, or has ended instead, is reported as such and counted in
  `n`, but has no part in the medians.
"""

import argparse
import itertools
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from elastic_jobs import MARK, POLL, SYSTEMS, Job, NotResizedError, Place, Step, end, wait_for

SIZES = {"grow": (2, 4), "shrink": (4, 2), "kill": (3, 2)}
LEAVE_LIMIT = 20.0
"""Seconds to wait, after a shrink, for the end of the workers that were removed."""


@dataclass(frozen=True)
class Outcome:
    """What became of one resize; seconds. With a `problem` the other fields mean nothing."""

    pause: float = 0.0
    effect: float = 0.0
    lost: float = 0.0
    repeated: int = 0
    step_time: float = 0.0
    sizes: tuple[int, ...] = ()
    leavers: tuple[str, ...] = ()
    problem: str | None = None


def worlds(steps: list[Step]) -> list[list[Step]]:
    """The steps in the order of time, one list for each stretch at the same size."""
    ordered = sorted(steps, key=lambda step: step.time)
    return [list(stretch) for _, stretch in itertools.groupby(ordered, key=lambda step: step.size)]


def usual_step_time(steps: list[Step]) -> float:
    """Median seconds from one step to the next; a step ends when its last worker has written it down."""
    ends = {step.number: step.time for step in steps}
    times = [ends[number] for number in sorted(ends)]
    return median(after - before for before, after in itertools.pairwise(times))


def measure(steps: list[Step], requested: float, sizes: tuple[int, int]) -> Outcome:
    """The outcome of a resize that was requested at that time, and has taken place."""
    before = [step for step in sorted(steps, key=lambda step: step.time) if step.time < requested]
    usual = usual_step_time([step for step in before if step.size == sizes[0]])
    stretches = worlds(steps)
    start = max(i for i, world in enumerate(stretches) if world[0].time < requested)
    end = next(i for i, world in enumerate(stretches) if i > start and world[0].size == sizes[1])
    passed = stretches[start : end + 1]
    gaps = [(old[-1], new[0]) for old, new in itertools.pairwise(passed)]
    first = passed[-1][0]
    return Outcome(
        pause=sum(new.time - old.time - usual for old, new in gaps),
        effect=first.time - requested,
        lost=first.time - before[-1].time - usual * (first.number - before[-1].number),
        repeated=sum(max(0, old.number + 1 - new.number) for old, new in gaps),
        step_time=usual,
        sizes=tuple(world[0].size for world in passed),
    )


def measure_loss(steps: list[Step], killed: float, victim: int) -> Outcome:
    """The outcome of the loss of a worker at that time, after which the others have trained on.

    The pause is the longest time without a step of the others. They may still finish the step under way.
    """
    others = sorted((step for step in steps if step.worker != victim), key=lambda step: step.time)
    before = [step for step in others if step.time < killed]
    usual = usual_step_time(before)
    rest = [before[-1], *(step for step in others if step.time >= killed)]
    last, first = max(itertools.pairwise(rest), key=lambda pair: pair[1].time - pair[0].time)
    return Outcome(
        pause=first.time - last.time - usual,
        effect=first.time - killed,
        lost=first.time - before[-1].time - usual * (first.number - before[-1].number),
        repeated=max(0, last.number + 1 - first.number),
        step_time=usual,
        sizes=(last.size, first.size),
    )


def newest_world(place: Place) -> tuple[int, int]:
    """Size of the world that did the last step, and how many steps that world has done."""
    stretches = worlds(place.steps())
    return (stretches[-1][0].size, len({step.number for step in stretches[-1]})) if stretches else (0, 0)


def observe(job: Job, place: Place, sizes: tuple[int, int], kill: bool, args: argparse.Namespace) -> Outcome:
    """Run a job, resize it once or kill a worker, and measure."""

    def trains_at(size: int, count: int) -> Callable[[], bool]:
        def reached() -> bool:
            now, done = newest_world(place)
            return now == size and done >= count

        return reached

    job.start(sizes[0])
    wait_for(trains_at(sizes[0], args.steps), args.limit, job, f"train with {sizes[0]} workers")
    requested = time.time()
    if kill:
        return lose_worker(job, place, args)
    job.resize(sizes[1])
    wait_for(trains_at(sizes[1], args.steps), args.limit, job, f"resize {sizes[0]} -> {sizes[1]}")
    outcome = measure(place.steps(), requested, sizes)
    leaving, deadline = max(0, sizes[0] - sizes[1]), time.monotonic() + LEAVE_LIMIT
    while len(job.leavers()) < leaving and job.ended() is None and time.monotonic() < deadline:
        time.sleep(POLL)
    leavers = job.leavers() + ["still there"] * (leaving - len(job.leavers()))
    if ended := job.ended():
        leavers.append(f"then the job ended with {ended}")
    return replace(outcome, leavers=tuple(leavers))


def lose_worker(job: Job, place: Place, args: argparse.Namespace) -> Outcome:
    """Kill the youngest worker of a job, and measure."""
    victim = max(step.worker for step in place.steps())
    killed = time.time()
    os.kill(victim, signal.SIGKILL)
    last = max(step.number for step in place.steps())

    def trains_on() -> bool:
        done = {step.number for step in place.steps() if step.time > killed and step.worker != victim}
        return len(done) >= args.steps and max(done) > last + 1

    wait_for(trains_on, args.limit, job, "train on without a worker")
    return measure_loss(place.steps(), killed, victim)


def run(system: str, phase: str, args: argparse.Namespace) -> Outcome:
    """One job of one system, resized once; nothing of it is left afterwards."""
    mark = uuid.uuid4().hex
    settings = {
        MARK: mark,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    with tempfile.TemporaryDirectory(prefix="resize-", ignore_cleanup_errors=True) as name:
        options = [name, "--delay", str(args.delay), "--startup", str(args.startup)]
        place = Place(Path(name), options, os.environ | settings)
        job = SYSTEMS[system][1](place)
        try:
            return observe(job, place, SIZES[phase], phase == "kill", args)
        except NotResizedError as error:
            if args.logs:
                keep(place.folder, args.logs / f"{system}-{phase}-{mark[:6]}")
            return Outcome(problem=str(error))
        finally:
            end(mark)


def keep(folder: Path, target: Path) -> None:
    """Copy what a job has printed."""
    target.mkdir(parents=True)
    for log in folder.rglob("*.log"):
        (target / log.name).write_bytes(log.read_bytes())


def describe(outcome: Outcome) -> str:
    """One run in one line."""
    if outcome.problem is not None:
        return outcome.problem
    sizes = " -> ".join(map(str, outcome.sizes))
    text = f"{sizes}: stood still for {outcome.pause:.2f} s, in effect after {outcome.effect:.2f} s"
    text += f", lost {outcome.lost:.2f} s in all, {outcome.repeated} steps repeated"
    text += f", step {1000 * outcome.step_time:.0f} ms"
    if len(outcome.sizes) > 2:
        text += ", not at once"
    return text + (f"; removed: {', '.join(outcome.leavers)}" if outcome.leavers else "")


def cells(outcomes: list[Outcome], peers: list[Outcome]) -> list[str]:
    """A row's figures for one kind of resize."""
    done = [outcome for outcome in outcomes if outcome.problem is None]
    count = f"{len(done)}/{len(outcomes)}"
    if not done:
        return ["did not resize", "", count, "", "", "", ""]
    pauses = [outcome.pause for outcome in done]
    effect, lost = median(outcome.effect for outcome in done), median(outcome.lost for outcome in done)
    repeated = "-".join(sorted({str(f([o.repeated for o in done])) for f in (min, max)}, key=int))
    peer = [outcome.pause for outcome in peers if outcome.problem is None]
    times = median(peer) / median(pauses) if peer and median(pauses) > 0 else None
    ratio = "" if times is None else f"{times:.1f}" if times >= 1 else f"{times:.2g}"
    spread = f"{min(pauses):.2f}-{max(pauses):.2f}"
    return [f"{median(pauses):.2f} s", spread, count, f"{effect:.1f} s", f"{lost:.2f} s", repeated, ratio]


def table(results: dict[tuple[str, str], list[Outcome]]) -> str:
    """All figures, one row a system and kind of resize."""
    figures = ["pause", "min-max", "n", "in effect", "lost", "repeated", "times shorter than plain Horovod"]
    rows = [["resize", "system", *figures]]
    for (phase, system), outcomes in results.items():
        old, new = SIZES[phase]
        figures = cells(outcomes, results.get((phase, "horovod"), []))
        rows.append(
            [f"kill -9 of {old}" if phase == "kill" else f"{old} -> {new}", SYSTEMS[system][0], *figures]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def summary(results: dict[tuple[str, str], list[Outcome]], rounds: int) -> str:
    """The figures in one line, for the README."""
    parts = []
    for phase, (old, new) in SIZES.items():
        pauses = {}
        for (kind, system), outcomes in results.items():
            done = [outcome.pause for outcome in outcomes if outcome.problem is None]
            if kind == phase:
                part = "" if len(done) == rounds else f" in {len(done)} of {rounds} runs"
                pauses[SYSTEMS[system][0]] = f"{median(done):.2f} s{part}" if done else "did not resize"
        if pauses:
            figures = ", ".join(f"{name} {pause}" for name, pause in pauses.items())
            what = f"kill -9 of one of {old} workers" if phase == "kill" else f"{old} -> {new} workers"
            parts.append(f"{what}: {figures}")
    cores = len(os.sched_getaffinity(0))
    return f"Training stands still, {'; '.join(parts)} (medians, {rounds} rounds in turns, {cores} cores)."


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How long training stands still when a job is resized.")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each system and kind of resize")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--only", choices=SIZES, help="one kind of resize")
    parser.add_argument("--steps", type=int, default=40, help="steps before the resize, and after it")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument("--startup", type=float, default=0, help="seconds that scripts sleep at their start")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds until a job counts as stuck")
    parser.add_argument("--logs", type=Path, help="folder for what jobs have printed that did not resize")
    args = parser.parse_args()
    if args.rounds < 1 or args.steps < 3:
        parser.error("--rounds must be at least 1, and --steps at least 3")
    return args


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    phases = [args.only] if args.only else list(SIZES)
    results: dict[tuple[str, str], list[Outcome]] = {(p, s): [] for p in phases for s in args.systems}
    for number, phase in itertools.product(range(1, args.rounds + 1), phases):
        for system in args.systems:
            outcome = run(system, phase, args)
            results[phase, system].append(outcome)
            print(f"round {number}, {phase}, {SYSTEMS[system][0]}: {describe(outcome)}", flush=True)
    print(f"\n{table(results)}\n\n{summary(results, args.rounds)}")


if __name__ == "__main__":
    main()
