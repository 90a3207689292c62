"""A job in exact reduction under a long random script of allocation changes and faults, and what came of it.

Faults happen to ranks at points of the training (``--faults``), and to processes, files and the disk at any
moment, from outside (``--strikes``, see `strikes.py`). A launcher or a service that is gone is started again,
as a supervisor does. With ``--service`` the job runs in the pool of a service, which makes the changes of its
allocation, and short jobs are submitted beside it; with ``--ray N`` in such a pool on a Ray cluster of N
nodes (`ray_nodes.py`), where each strike is at a node: one is added, loses its power or Ray's processes,
freezes, or is preempted; with ``--hosts N`` over N hosts in network namespaces (`host_bed.py`), which fail,
too; else ``edt-launch`` runs it alone.

The same training is then run undisturbed, in one process. The script follows from the seed; whom it hits at
what moment does not, because that depends on how fast the machine is. The exit code is 1 if a promise is
broken.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import host_bed
import ray_nodes
import strikes
from attacked import journals
from chaos_jobs import SLOTS, TRAIN, Alone, ChaosJob, OnFirstHost, OnRay, OverHosts, Pooled
from disturbed import history
from elastic_jobs import MARK, POLL, NotResizedError, Place, end
from host_bed import HostBed
from ray_nodes import RayNodes
from strikes import ROLES, SmallDisk

SAMPLES = 100
"""In the dataset of train.py."""

BURST = (0.05, 0.4)
"""Seconds between two changes of a burst; the longest pauses between bursts are fifty times as long."""

CHANGES_PER_SHORT_JOB = 10

LEAST_WORLDS = 1 / 50
"""Worlds that have to be formed for each change, so that a run shows anything."""

LEAST_FAULTS = 1 / 3
"""The part that has to find a victim of the faults whose steps and resizes the job has come to."""

STEPS_PER_SECOND = 4
"""What is expected of the job at least, to place the faults."""

END_LIMIT = 30.0
"""Seconds after the job's end in which every process of it has to be gone."""

IN_STEP = ("before-reduction", "micro-batch", "after-reduction", "after-commit")
IN_RESIZE = ("waiting", "rendezvous", "transfer")

Row = dict[str, Any]
Draw = Callable[[random.Random, int, int], Row]


def worker_fault(action: str) -> Draw:
    """Draws a row in which this happens to a rank from the lowest one on, in a step."""
    return lambda chance, rank, step: {
        "step": step,
        "action": action,
        "rank": rank,
        "point": chance.choice(IN_STEP),
    }


def resize_fault(chance: random.Random, rank: int, step: int) -> Row:
    """Draws a row in which a worker is killed in a resize; there is about one in twenty steps."""
    victim = chance.choice([rank, "newcomer"])
    return {
        "resize": 1 + step // 20,
        "action": "kill",
        "rank": victim,
        "point": chance.choice(IN_RESIZE),
    }


KINDS: dict[str, Draw] = {
    "kill": worker_fault("kill"),
    "drop": worker_fault("drop"),
    "resize": resize_fault,
    "stop": worker_fault("stop"),
    "hang": worker_fault("hang"),
    "terminate": worker_fault("terminate"),
    "slow": lambda _, rank, step: {
        "step": step,
        "action": "slow",
        "rank": rank,
        "seconds": 0.2,
        "steps": 5,
    },
    "corrupt": lambda _, __, step: {"step": step, "action": "corrupt-checkpoint"},
}


@dataclass(frozen=True)
class Change:
    """So many seconds after the start, so many slots."""

    at: float
    slots: int


def draw_changes(chance: random.Random, count: int, duration: float) -> list[Change]:
    """Changes in bursts, from the start on, the last one at `duration` seconds; no slots twice in a row."""
    gaps: list[float] = []
    while len(gaps) < count:
        gaps += [chance.uniform(*BURST) for _ in range(chance.randint(1, 12))]
        gaps.append(chance.uniform(1, 50) * BURST[1])
    scale = duration / sum(gaps[:count])
    changes: list[Change] = []
    at, slots = 0.0, 2
    for gap in gaps[:count]:
        at += gap * scale
        slots = chance.choice([other for other in SLOTS if other != slots])
        changes.append(Change(at, slots))
    return changes


def draw_faults(chance: random.Random, args: argparse.Namespace) -> list[Row]:
    """The rows of a fault script."""
    last = max(2, int(args.duration * STEPS_PER_SECOND))
    lowest = 0 if args.restarts else 1  # without restarts, the death of a job's only worker is its end
    rows = []
    for step in sorted(chance.randint(2, last) for _ in range(args.faults)):
        draw = KINDS[chance.choice(args.kinds)]
        rank = min(chance.randint(lowest, SLOTS[-1] - 1) for _ in range(2))  # low ones are there more often
        rows.append(draw(chance, rank, step))
    return rows


def toml(row: Row) -> str:
    """A row as a fault script has it."""
    return f"{{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in row.items())} }}"


def due(faults: Sequence[Row], steps: int, resizes: int) -> list[Row]:
    """The faults whose step, or whose resize, the job has come to."""
    reached = {"step": steps, "resize": resizes}
    return [row for row in faults if all(row[unit] <= reached[unit] for unit in reached if unit in row)]


@dataclass
class Report:
    """What has come of it.

    Attributes:
        figures: what was counted and measured, for people.
        broken: promises that were not kept.
    """

    figures: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


class Run:
    """One job, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        changes: list[Change],
        faults: list[Row],
        args: argparse.Namespace,
        disk: SmallDisk | None = None,
        bed: HostBed | None = None,
        nodes: RayNodes | None = None,
    ) -> None:
        self.folder = folder
        self.changes = changes
        self.faults = faults
        self.struck: list[str] = []
        self.args = args
        self.mark = uuid.uuid4().hex
        script = folder / "faults"
        script.write_text("\n".join(["faults = [", *(f"    {toml(row)}," for row in faults), "]\n"]))
        settings = {MARK: self.mark, "OMP_NUM_THREADS": "1", "EDT_FAULTS": str(script)}
        options = [str(folder), "--delay", str(args.delay)]
        variables = os.environ if bed is None else bed.variables()
        variables = {**variables, **settings}
        launching: list[object] = []
        if args.restarts:
            launching += ["--max-restarts", args.restarts, "--checkpoint-interval", 0.5]
        if {"stop", "hang"} & set(args.kinds):
            launching += ["--hang-timeout", 3]
        self.job: ChaosJob
        if nodes is not None:
            self.job = OnRay(Place(folder, options, variables), args.restarts, settings, nodes)
        elif args.service:
            self.job = Pooled(Place(folder, options, variables), args.restarts, settings, disk)
        elif bed is not None:
            self.job = OverHosts(OnFirstHost(folder, options, variables, bed), launching)
        else:
            self.job = Alone(Place(folder, options, variables), launching, disk)
        roles = [role for role in ROLES if args.service or role != "service"]
        usual = {} if nodes is not None else strikes.strikes_at(self.job, disk, roles)
        self.strikes = {**usual, **self.job.strikes()}
        self.changed_at: list[float] = []
        self.hit_at = 0.0
        """When the last change or strike was."""
        self.hangs = 0
        self.longest_wait = 0.0

    def draw_strikes(self, chance: random.Random) -> None:
        """Draw the moments of all strikes, as numbers of changes, and what they are."""
        names = [*self.strikes]
        moments = sorted(chance.randint(1, len(self.changes)) for _ in range(self.args.strikes))
        self.planned = [(moment, chance.choice(names)) for moment in moments]

    def disturb(self, report: Report) -> None:
        """Start the job, change its allocation as planned, and wait for its end.

        Raises:
            NotResizedError: it ended too early, or got stuck.
        """
        self.job.start(2)
        started, before = time.monotonic(), 0.0
        for change in self.changes:
            if change.at - before > BURST[1]:
                started += self._let_it_train()
            before = change.at
            time.sleep(max(0.0, started + change.at - time.monotonic()))
            self.job.revive()
            if ended := self.job.ended():
                raise NotResizedError(f"ended with {ended} after {len(self.changed_at)} changes")
            self.job.resize(change.slots)
            self.changed_at.append(time.time())
            if isinstance(self.job, Pooled) and len(self.changed_at) % CHANGES_PER_SHORT_JOB == 0:
                self.job.submit_short()
            self._strike()
            self.hit_at = time.time()
        self._let_it_train()
        wanted, found = self.changes[-1].slots, self.size()
        report.figures["workers after the last change"] = f"{found} of {wanted}"
        if not self._has_trained():
            raise NotResizedError(f"has not trained for {self.args.limit:g} s after the last change")
        for name in ("end", "hurry"):
            (self.folder / name).touch()
        deadline = time.monotonic() + self.args.limit
        while (ended := self.job.ended()) is None:
            self.job.revive()
            if time.monotonic() > deadline:
                raise NotResizedError(f"did not end within {self.args.limit:g} s")
            time.sleep(POLL)
        if ended != "exit 0":
            raise NotResizedError(f"ended with {ended}")
        report.broken += self.job.close()

    def _strike(self) -> None:
        """Do what is due after the present number of changes, each a moment after the other."""
        while self.planned and self.planned[0][0] <= len(self.changed_at):
            _, name = self.planned.pop(0)
            if (happened := strikes.strike(self.strikes, name)) is not None:
                self.struck.append(happened)
                print(f"{time.strftime('%H:%M:%S')} {len(self.struck)}: {happened}", flush=True)
            time.sleep(random.uniform(0, 2 * BURST[1]))

    def _let_it_train(self) -> float:
        """Wait until the job has trained since it was last changed or struck; for how long, in seconds.

        On a busy machine all changes would be over before the job had noticed the first.
        """
        began = time.monotonic()
        while time.monotonic() - began < self.args.limit and not self.job.ended():
            self.job.revive()
            if self._has_trained():
                break
            time.sleep(POLL)
        waited = time.monotonic() - began
        self.hangs += waited >= self.args.limit
        self.longest_wait = max(self.longest_wait, waited)
        return waited

    def _has_trained(self) -> bool:
        """Whether it has since the last change or strike."""
        return any(event["time"] > self.hit_at for event in self.job.told("progress", "resumed"))

    def size(self) -> int | None:
        """Workers in the newest world."""
        worlds = self.job.told("world")
        return worlds[-1]["size"] if worlds else None

    def left_behind(self) -> list[str]:
        """Processes of the job, and their shared memory, that are there some time after its end."""
        deadline = time.monotonic() + END_LIMIT
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(POLL)
        pids = {str(line["pid"]) for line in self.job.told("ready") if "pid" in line}
        memory = [path.name for path in Path("/dev/shm").iterdir() if pids & set(path.name.split("_"))]
        return left + [f"/dev/shm/{name}" for name in memory]

    def _processes(self) -> list[str]:
        return [f"process {p.pid} ({p.name()})" for p in self.job.members() if p.is_running()]


def count(run: Run, report: Report) -> None:
    """Fill in what the job has told."""
    worlds, resumed = run.job.told("world"), run.job.told("resumed")
    failed = run.job.told("failed")
    executions = history.read(run.folder)
    happened = len(list(run.folder.glob("faults.*.done")))
    steps = max((event["step"] for event in run.job.told("progress")), default=0)
    came = due(run.faults, steps, len(resumed))
    report.figures |= {
        "changes made": str(len(run.changed_at)),
        "changes reached before the next one": str(reached(run.changes, run.changed_at, worlds)),
        "worlds formed": str(len(worlds)),
        "faults": f"{len(came)} of {len(run.faults)} came due, {happened} found their victim",
        "strikes": f"{len(run.struck)} of {run.args.strikes}: "
        + ", ".join(f"{number} {name}" for name, number in sorted(Counter(run.struck).items())),
        "longest wait for training after a change or strike": f"{run.longest_wait:.1f} s",
        "deaths survived": str(len(failed)),
        "restarts": str(len(run.job.told("restarting"))),
        "steps": f"{len(executions)}, {history.redone(executions)} of them begun again",
    }
    report.broken += [f"{run.hangs} times it has not trained for {run.args.limit:g} s"] * bool(run.hangs)
    report.broken += proves_little(len(run.changed_at), len(worlds), len(came), happened)
    for kind, pauses in pauses_by_kind(worlds, resumed, failed).items():
        longest = f"{median(pauses):.2f} s, at most {max(pauses):.2f} s ({len(pauses)})"
        report.figures[f"pause, {kind}"] = longest


def proves_little(changes: int, worlds: int, faults: int, happened: int) -> list[str]:
    """Why keeping all promises says nothing: too little has happened to the job."""
    found = []
    if worlds < LEAST_WORLDS * changes:
        found.append(
            f"{changes} changes have led to {worlds} worlds only; give them more seconds (--duration)"
        )
    if happened < LEAST_FAULTS * faults:
        found.append(
            f"{happened} of {faults} faults that came due have found a victim: the ranks that they name were "
            "not there; give them more seconds (--duration)"
        )
    return found


def reached(changes: list[Change], changed_at: list[float], worlds: list[dict[str, Any]]) -> int:
    """How many changes were in force before the next came."""
    ends = [*changed_at[1:], float("inf")]
    found = 0
    for change, begin, finish in zip(changes, changed_at, ends, strict=False):
        before = [world["size"] for world in worlds if world["time"] < begin][-1:]
        during = [world["size"] for world in worlds if begin <= world["time"] < finish]
        found += change.slots in before + during
    return found


def pauses_by_kind(
    worlds: list[dict[str, Any]], resumed: list[dict[str, Any]], failed: list[dict[str, Any]]
) -> dict[str, list[float]]:
    """Seconds for which training stood still, by what the world was formed for."""
    found: dict[str, list[float]] = {}
    for world in worlds:
        # Generations are counted anew when a job is restarted.
        own = [e for e in resumed if e["generation"] == world["generation"] and e["time"] >= world["time"]]
        pauses = [event["pause"] for event in own[:1]]
        before = max((other["time"] for other in worlds if other["time"] < world["time"]), default=0.0)
        after_death = any(before < failure["time"] < world["time"] for failure in failed)
        kind = "after a death" if after_death else str(world["reason"])
        if pauses and world["previous_size"]:
            found.setdefault(kind, []).append(pauses[0])
    return found


def compare(run: Run, report: Report) -> None:
    """Check the promises about what was trained."""
    final = json.loads((run.folder / "final.json").read_text())
    alone = run.folder / "undisturbed"
    alone.mkdir()
    command = [sys.executable, str(TRAIN), str(alone), "--epochs", str(final["epochs"])]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    equal = json.loads((alone / "final.json").read_text())["digest"] == final["digest"]
    mistakes = history.mistakes(history.read(run.folder), SAMPLES, final["epochs"])
    report.figures["weights, to the bit"] = "those of the undisturbed job" if equal else "others"
    report.figures["samples"] = "each once in every epoch" if not mistakes else "; ".join(mistakes[:3])
    if not equal:
        report.broken.append("the weights are not those of the undisturbed job")
    report.broken += mistakes
    shared = journals.overlaps(run.folder, run.folder / "service" / "out")
    report.figures["devices"] = "no two workers at a time" if not shared else f"{shared[0]}"
    report.broken += [f"two workers had a device: {one} and {other}" for one, other in shared[:3]]


def survey(run: Run) -> Report:
    """Run the job and tell what came of it; nothing is left of it afterwards."""
    report = Report()
    try:
        run.disturb(report)
        left = run.left_behind()
        report.figures["left behind"] = ", ".join(left) or "nothing"
        report.broken += [f"left behind: {what}" for what in left]
        compare(run, report)
    except NotResizedError as error:
        report.broken.append(f"the job {error}")
    finally:
        count(run, report)
        end(run.mark)
    return report


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What a job makes of many changes and faults.")
    parser.add_argument("--seed", type=int, default=None, help="of the script; default: a new one")
    parser.add_argument("--changes", type=int, default=1000, help="of the allocation")
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--strikes", type=int, default=0, help="at the job's processes, files and disk")
    parser.add_argument("--service", action="store_true", help="run the job in a service's pool")
    parser.add_argument("--hosts", type=int, default=0, help="run the job over so many hosts")
    parser.add_argument("--ray", type=int, default=0, help="run the job on a Ray cluster of so many nodes")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of faults")
    parser.add_argument(
        "--duration", type=float, default=240.0, help="seconds from the first change to the last"
    )
    parser.add_argument("--restarts", type=int, default=20, help="allow so many; 0: rank 0 is no victim")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step lasts besides")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds until a job counts as stuck")
    parser.add_argument("--logs", type=Path, help="new folder for all that the job writes, to be kept")
    args = parser.parse_args()
    if args.changes < 1 or args.faults < 0 or args.strikes < 0:
        parser.error("--changes must be at least 1, and --faults and --strikes at least 0")
    if args.service or args.ray:  # the limits of their jobs for workers that hang are up to half an hour
        args.kinds = [kind for kind in args.kinds if kind != "hang"]
    if args.hosts and (args.service or args.hosts < 2):
        parser.error("--hosts must be at least 2, and goes without --service")
    if args.ray and (args.service or args.hosts or args.ray < 2):
        parser.error("--ray must be at least 2, and goes without --service and --hosts")
    if args.ray and (reason := ray_nodes.missing()):
        parser.error(reason)
    if args.hosts and (reason := host_bed.missing()):
        parser.error(reason)
    if args.logs is not None and args.logs.exists():
        parser.error(f"--logs: {args.logs} is there already; name a new folder")
    return args


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    seed = random.randrange(2**32) if args.seed is None else args.seed
    chance = random.Random(seed)
    changes = draw_changes(chance, args.changes, args.duration)
    faults = draw_faults(chance, args)
    print(f"seed {seed}: {len(changes)} changes in {args.duration:g} s, and these faults:", flush=True)
    print("".join(f"    {toml(row)}\n" for row in faults), flush=True)
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True))
        folder = args.logs.absolute() if args.logs else Path(name) / "job"
        folder.mkdir(parents=True)
        disk = bed = nodes = None
        if args.ray:
            nodes = stack.enter_context(ray_nodes.ray_nodes(args.ray))
        elif args.hosts:
            bed = stack.enter_context(host_bed.hosts(Path(name), args.hosts + 1))
        elif reason := strikes.cannot_mount():
            print(reason, flush=True)
        else:
            filled = folder / ("service/home" if args.service else "out")
            disk = stack.enter_context(strikes.small_disk(filled, args.logs is not None))
        run = Run(folder, changes, faults, args, disk, bed, nodes)
        run.draw_strikes(chance)
        report = survey(run)
    width = max(map(len, report.figures))
    for what, figure in report.figures.items():
        print(f"{what:{width}}  {figure}")
    for promise in report.broken:
        print(f"BROKEN: {promise}")
    sys.exit(1 if report.broken else 0)


if __name__ == "__main__":
    main()
