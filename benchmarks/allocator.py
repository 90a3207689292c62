"""How the allocator compares: replays of published workloads, and how long its decisions take.

    python benchmarks/allocator.py                  everything; about a quarter of an hour on two cores
    python benchmarks/allocator.py --only pollux --quick

The replays call the functions that the service calls, under the timings that are printed. Peers' figures are
what their own simulators printed (traces/*/baselines.json), for the very workloads that are replayed here; a
line of this replay under Tiresias' policy says how closely it agrees with them. Differences below 3 % are
ties. The users of these traces are made up, so all jobs share the cluster directly. EDT's jobs are elastic.
Pollux' change their batch sizes too: compare it with the batch-adaptive lines. Those of Tiresias, Optimus and
Shockwave keep their batch; Shockwave's and Tiresias' are rigid.
"""

import argparse
import json
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from edt_launch.tools.simulate.figures import TOLERANCE, Figures, contention_rho, judge
from edt_launch.tools.simulate.policies import FairShare, Fifo, Tiresias
from edt_launch.tools.simulate.replay import ROUNDS, Timing, machines, replay
from edt_launch.tools.simulate.trace import read

TRACES = Path(__file__).parent / "traces"
LOADS = {
    "0.5x": ("load0.5-1", "load0.5-2"),
    "1.0x": ("tuned-1", "tuned-2", "tuned-3", "tuned-4"),
    "1.5x": ("load1.5-1", "load1.5-2"),
    "2.0x": ("load2.0-1", "load2.0-2"),
}
SHOCKWAVE = "120_0.2_5_100_40_25_32gpus"
PER_HOST = 4
EVENTS = Timing(interval=5.0, resize_cost=5.0)
MEASURED = Timing(interval=5.0, resize_cost=0.4, start_cost=5.0)
"""What `benchmarks/resize.py` measures for a resize; a start takes longer: processes have to import torch."""
CHECK = "Tiresias-like, this replay, 60 s rounds"
QUICK = 60.0
"""Seconds between decisions besides those at events, with --quick."""


@dataclass(frozen=True)
class Case:
    """One replay: a trace, on what, under which policy, with which timing."""

    trace: str
    gpus: int
    policy: str
    timing: Timing
    adaptive: bool = False
    weights: bool = False
    """Whether a job weighs as much as it requested GPUs."""


@dataclass(frozen=True)
class Result:
    """Its figures, and finish-time fairness as Shockwave defines it: the worst, and the unfair part."""

    figures: Figures
    worst_contention: float
    unfair_contention: float


def run(case: Case) -> Result:
    trace = read(TRACES / f"{case.trace}.csv", case.adaptive)
    if case.weights:
        trace = replace(trace, jobs=tuple(replace(job, weight=job.requested) for job in trace.jobs))
    hosts = machines(case.gpus, PER_HOST)
    policy = {
        "EDT": lambda: FairShare(trace, hosts, case.timing, by_user=False),
        "FIFO": lambda: Fifo(hosts),
        "Tiresias": lambda: Tiresias(hosts),
    }[case.policy]()
    outcome = replay(trace, hosts, policy, case.timing)
    fairness = contention_rho(outcome)
    unfair = sum(value > TOLERANCE for value in fairness) / len(fairness)
    return Result(judge(outcome, by_user=False), max(fairness), unfair)


def pollux(pool: "multiprocessing.pool.Pool", events: Mapping[str, Timing], loads: Sequence[str]) -> None:
    published = json.loads((TRACES / "pollux" / "baselines.json").read_text())["results"]
    ours = {CHECK: ("Tiresias", ROUNDS, False)} | {
        f"EDT, {'adaptive' if is_adaptive else 'fixed'} batch, {name}": ("EDT", timing, is_adaptive)
        for is_adaptive in (False, True)
        for name, timing in {"60 s rounds, 30 s a resize": ROUNDS, **events}.items()
    }
    cases = {
        (name, line): Case(f"pollux/{name}", 64, policy, timing, is_adaptive)
        for load in loads
        for name in LOADS[load]
        for line, (policy, timing, is_adaptive) in ours.items()
    }
    results = dict(zip(cases, pool.map(run, cases.values(), chunksize=1), strict=True))
    for load in loads:
        names = LOADS[load]
        print(f"\nPollux workloads at {load} load, 64 GPUs: {', '.join(names)}")
        show("", "mean JCT", "/ Pollux", "p99 JCT", "makespan", "rho, worst", "resizes", "suspensions")
        reference = mean(published[f"pollux/{name}"]["avg_jct"] for name in names)
        for peer in ("pollux", "tiresias", "optimus"):
            rows = [published[f"{peer}/{name}"] for name in names]
            jct, tail = mean(row["avg_jct"] for row in rows), mean(row["p99"] for row in rows)
            last, worst = mean(row["makespan"] for row in rows), max(row["rho_max"] for row in rows)
            line = f"{peer.capitalize()}, published"
            show(line, jct, f"{jct / reference:.2f}", tail, last, f"{worst:.2f}")
        for line in ours:
            figures = [results[name, line].figures for name in names]
            jct, tail = mean(each.mean_jct for each in figures), mean(each.p99_jct for each in figures)
            last, worst = mean(each.makespan for each in figures), max(each.worst_rho for each in figures)
            moved = mean(each.resizes_per_job for each in figures)
            lost = mean(each.suspensions_per_job for each in figures)
            ratio = f"{jct / reference:.2f}"
            show(line, jct, ratio, tail, last, f"{worst:.2f}", f"{moved:.2f}", f"{lost:.2f}")


def shockwave(pool: "multiprocessing.pool.Pool", events: Mapping[str, Timing]) -> None:
    published = json.loads((TRACES / "shockwave" / "baselines.json").read_text())["32gpu-120job/shipped"]
    rounds = {"120 s rounds, 10 s a resize": Timing(interval=120.0, coalesce=None, resize_cost=10.0)}
    path = f"shockwave/{SHOCKWAVE}"
    lines = {
        f"EDT, {name}{', weighted' * weights}": Case(path, 32, "EDT", timing, weights=weights)
        for weights in (False, True)
        for name, timing in (rounds | events).items()
    } | {
        f"{policy}, this replay, {name.partition(',')[0]}": Case(path, 32, policy, timing)
        for policy in ("FIFO", "Tiresias")
        for name, timing in rounds.items()
    }
    print("\nShockwave workload, 120 jobs, 32 GPUs; FTF as Shockwave defines it; EDT's jobs are elastic;")
    print("weighted: a job weighs as much as it requested GPUs, which is what this FTF entitles it to")
    show("", "mean JCT", "p99 JCT", "makespan", "FTF, worst", "unfair", "resizes", "suspensions")
    for peer in ("shockwave", "gandiva_fair", "max_min_fairness", "finish_time_fairness"):
        row = published[peer]
        unfair = f"{row['unfair_gt_1_05_pct']:.1f} %"
        line = f"{peer}, published"
        show(line, row["avg_jct"], row["p99"], row["makespan"], f"{row['ftf_max']:.2f}", unfair)
    for line, result in zip(lines, pool.map(run, lines.values(), chunksize=1), strict=True):
        figures = result.figures
        show(
            line,
            figures.mean_jct,
            figures.p99_jct,
            figures.makespan,
            f"{result.worst_contention:.2f}",
            f"{100 * result.unfair_contention:.1f} %",
            f"{figures.resizes_per_job:.2f}",
            f"{figures.suspensions_per_job:.2f}",
        )


def show(line: str, *cells: float | str) -> None:
    """Print a line of a table; numbers are seconds."""
    shown = [cell if isinstance(cell, str) else f"{cell:,.0f}" for cell in cells]
    print(f"{line:46}" + "".join(f"{cell:>12}" for cell in shown))


def decision_times() -> None:
    from decisions import main as measure

    print("\nTime of a decision")
    measure([])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Replays of published workloads, and times of decisions.")
    parser.add_argument("--only", choices=["decisions", "pollux", "shockwave"], help="one part of it")
    parser.add_argument("--load", choices=[*LOADS], help="one of the loads of Pollux' workloads alone")
    parser.add_argument("--quick", action="store_true", help=f"decide at events and every {QUICK:g} s only")
    args = parser.parse_args(arguments)
    events = {
        f"{timing.resize_cost:g} s a resize": replace(timing, interval=QUICK) if args.quick else timing
        for timing in (EVENTS, MEASURED)
    }
    interval = QUICK if args.quick else EVENTS.interval
    print(f"Times in seconds. Where no rounds are named, decisions come at events and every {interval:g} s.")
    print("A resize of 0.4 s is what EDT measures, with 5 s to start; elsewhere both cost the same.")
    if args.only in (None, "decisions"):
        decision_times()
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        if args.only in (None, "pollux"):
            pollux(pool, events, [args.load] if args.load else [*LOADS])
        if args.only in (None, "shockwave"):
            shockwave(pool, events)


if __name__ == "__main__":
    main()
