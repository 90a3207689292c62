"""How long a decision takes: `python benchmarks/decisions.py`.

A pool of three levels (departments, users, jobs) is decided on until nothing moves; then, in turns, nothing
has happened since (`steady`), or one job has ended and another has come (`event`), or a tenth of all jobs
comes at once (`rush`). The same jobs on an eighth of the GPUs take turns, most of them having waited for too
long (`crowd`). Every decision sees newly made jobs, so that nothing can be kept from one to the next but the
plan's memory.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from random import Random
from statistics import median

import machine

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, Job, Owner, Plan, Usage

SIZES = ((1_000, 200), (10_000, 2_000), (100_000, 20_000))
"""GPUs and jobs."""

KINDS = ("steady", "event", "rush", "crowd")


@dataclass(frozen=True)
class Figures:
    """Seconds of processor time that decisions took, by GPUs and jobs."""

    gpus: int
    jobs: int
    steady: tuple[float, ...]
    event: tuple[float, ...]
    rush: tuple[float, ...]
    crowd: tuple[float, ...]


def pool(gpus: int, jobs: int, random: Random) -> tuple[Cluster, list[Job]]:
    """A pool of hosts with eight GPUs, a user for ten jobs, a department for ten users."""
    hosts = tuple(Host(f"host{number}", tuple(map(str, range(8)))) for number in range(gpus // 8))
    users = jobs // 10
    owners = [Owner("", None)]
    owners += [
        Owner(f"d{number}", weight=random.choice([1, 2, 3]), guarantee=2.0)
        for number in range(max(1, users // 10))
    ]
    owners += [
        Owner(f"u{number}", f"d{number // 10 % max(1, users // 10)}", random.choice([1, 1, 2]))
        for number in range(users)
    ]
    return Cluster(hosts, tuple(owners)), [_job(number, users, random) for number in range(jobs)]


def _job(number: int, users: int, random: Random) -> Job:
    least = random.choice([1, 1, 2, 4])
    return Job(
        f"j{number}",
        f"u{random.randrange(users)}",
        least,
        least * random.choice([1, 2, 4, 8, 16]),
        float(number % 1000),
        weight=random.choice([1.0, 1.0, 2.0]),
        usage=Usage(random.uniform(1e3, 1e5), random.uniform(1e3, 1e5), 1000.0, random.uniform(1e3, 1e5)),
    )


def after(plan: Plan, jobs: Sequence[Job], now: float) -> list[Job]:
    """The jobs, made anew, once the plan has been carried out; those that wait have always done so."""
    return [
        replace(
            job,
            held=held,
            started=(job.started or now) if held else None,
            waiting_since=None if held else job.submitted,
        )
        for job in jobs
        for held in [plan.assignments[job.id]]
    ]


def measure(gpus: int, jobs: int, rounds: int) -> Figures:
    """Time `rounds` decisions of each kind, a quarter as many of a rush and of a crowd."""
    random = Random(f"{gpus} {jobs}")
    cluster, running = pool(gpus, jobs, random)
    now, users = 1000.0, jobs // 10
    steady, event = list[float](), list[float]()
    for number in range(-3, rounds):
        for times in (event, steady):
            now += 20.0
            if times is event and number >= 0:
                del running[random.randrange(len(running))]
                running.append(_job(jobs + number, users, random))
            plan, seconds = _timed(now, cluster, running)
            if number >= 0:
                times.append(seconds)
            for _ in range(3):
                cluster = replace(cluster, memory=plan.memory)
                running = after(plan, running, now)
                plan, _ = decide(now, cluster, running)
    few = range(max(1, rounds // 4))
    rushing = [*running, *(_job(2 * jobs + number, users, random) for number in range(jobs // 10))]
    rush = [_timed(now + 20.0, cluster, rushing)[1] for _ in few]
    return Figures(gpus, jobs, tuple(steady), tuple(event), tuple(rush), tuple(_crowd(gpus // 8, jobs, few)))


def _crowd(gpus: int, jobs: int, rounds: Iterable[int]) -> Iterator[float]:
    cluster, waiting = pool(gpus, jobs, Random(f"{gpus} {jobs}"))
    now = 1e6
    for _ in rounds:
        now += 400.0
        plan, seconds = _timed(now, cluster, waiting)
        cluster, waiting = replace(cluster, memory=plan.memory), after(plan, waiting, now)
        yield seconds


def _timed(now: float, cluster: Cluster, jobs: Sequence[Job]) -> tuple[Plan, float]:
    gc.collect()
    start = time.process_time()
    plan, _ = decide(now, cluster, jobs)
    return plan, time.process_time() - start


def growth(figures: Sequence[Figures]) -> float:
    """Exponent of the time's growth with the number of jobs, from the smallest to the largest pool."""
    first, last = figures[0], figures[-1]
    return log(median(last.steady) / median(first.steady)) / log(last.jobs / first.jobs)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="decisions of each kind")
    parser.add_argument("--largest", type=int, default=100_000, help="GPUs of the largest pool")
    parser.add_argument("--json", action="store_true", help="print figures for programs")
    options = parser.parse_args(arguments)
    all_figures = [measure(gpus, jobs, options.rounds) for gpus, jobs in SIZES if gpus <= options.largest]
    if options.json:
        print(json.dumps([figures.__dict__ for figures in all_figures]))
        return
    print(machine.speed())
    print(f"{'GPUs':>8} {'jobs':>7}" + "".join(f"{kind:>12}: median  max" for kind in KINDS))
    for figures in all_figures:
        kinds = [getattr(figures, kind) for kind in KINDS]
        columns = [f"{1e3 * median(times):>16.1f} {1e3 * max(times):>6.1f} ms" for times in kinds]
        print(f"{figures.gpus:>8,} {figures.jobs:>7,}" + "".join(columns))
    if len(all_figures) > 1:
        print(f"time grows with jobs to the power of {growth(all_figures):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
