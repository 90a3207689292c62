"""A job in exact reduction under a long random script of allocation changes and faults, and what came of it.

Faults happen to ranks at points of the training (``--faults``), and to processes at any moment, from outside
(``--strikes``): a worker, the agent, the warm server, the launcher or the service is killed or stopped for a
while. A launcher or a service that is gone is started again, as a supervisor does. With ``--service`` the job
runs in the pool of a service, which makes the changes of its allocation; else ``edt-launch`` runs it alone.

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
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import requests
from attacked.service import TIMEOUT, Service, tar
from disturbed import history
from elastic_jobs import MARK, POLL, EdtJob, NotResizedError, Place, end, environment, exit_text, wait_for

TRAIN = Path(history.__file__).with_name("train.py")
SAMPLES = 100
"""In the dataset of train.py."""

SLOTS = (1, 2, 3, 4)
BURST = (0.05, 0.4)
"""Seconds between two changes of a burst; the longest pauses between bursts are fifty times as long."""

LEAST_WORLDS = 1 / 50
"""Worlds that have to be formed for each change, so that a run shows anything."""

LEAST_FAULTS = 1 / 3
"""The part of the faults that has to find a victim."""

STEPS_PER_SECOND = 4
"""What is expected of the job at least, to place the faults."""

END_LIMIT = 10.0
"""Seconds after the job's end in which every process of it has to be gone."""

IN_STEP = ("before-reduction", "micro-batch", "after-reduction", "after-commit")
IN_RESIZE = ("waiting", "rendezvous", "transfer")

Row = dict[str, object]
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


ROLES: dict[str, Callable[[str, bool], bool]] = {
    "worker": lambda line, is_worker: is_worker,
    "agent": lambda line, is_worker: "edt_launch.agent" in line and not is_worker,
    "warm server": lambda line, is_worker: "warm server" in line and not is_worker,
    "launcher": lambda line, is_worker: "edt_launch.launcher.command" in line and not is_worker,
    "service": lambda line, is_worker: "edt_launch.cli serve" in line,
}
"""What processes of a job are, by their command line and whether they have reported as workers."""

STOPPED = 2.0
"""Seconds after which a stopped process goes on, unless it was killed meanwhile."""


@dataclass(frozen=True)
class Strike:
    """After so many changes, a random process of that role gets a signal."""

    after: int
    role: str
    signal: signal.Signals


def draw_strikes(chance: random.Random, count: int, changes: int, in_service: bool) -> list[Strike]:
    """Strikes in the order of their moments."""
    kinds = (signal.SIGKILL, signal.SIGSTOP)
    roles = [role for role in ROLES if in_service or role != "service"]
    moments = sorted(chance.randint(1, changes) for _ in range(count))
    return [Strike(moment, chance.choice(roles), chance.choice(kinds)) for moment in moments]


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


def draw_faults(chance: random.Random, args: argparse.Namespace) -> list[str]:
    """The rows of a fault script, in TOML."""
    last = max(2, int(args.duration * STEPS_PER_SECOND))
    lowest = 0 if args.restarts else 1  # without restarts, the death of a job's only worker is its end
    rows = []
    for step in sorted(chance.randint(2, last) for _ in range(args.faults)):
        draw = KINDS[chance.choice(args.kinds)]
        rank = min(chance.randint(lowest, SLOTS[-1] - 1) for _ in range(2))  # low ones are there more often
        row = draw(chance, rank, step)
        rows.append(f"{{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in row.items())} }}")
    return rows


@dataclass
class Report:
    """What has come of it.

    Attributes:
        figures: what was counted and measured, for people.
        broken: promises that were not kept.
    """

    figures: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


class Alone(EdtJob):
    """`edt-launch`, started again whenever it was killed."""

    def __init__(self, place: Place, script: Path, options: list[object]) -> None:
        super().__init__(place, script, options)
        self._slots = 0

    def resize(self, size: int) -> None:
        """Replace the allocation."""
        self._slots = size
        super().resize(size)

    def ended(self) -> str | None:
        """How it ended by itself."""
        found = super().ended()
        return None if found == signal.SIGKILL.name else found

    def revive(self) -> None:
        """Start it again, if it was killed."""
        if super().ended() == signal.SIGKILL.name:
            self.start(self._slots)

    def close(self) -> None:
        """Nothing is left to be ended."""


class Pooled:
    """A job in the pool of a service, which is started again whenever it was killed."""

    def __init__(self, place: Place, restarts: int, settings: dict[str, str]) -> None:
        self._place = place
        self._service = Service(place.folder / "service", slots=SLOTS[-1])
        self._service.environment = place.environment
        self._spec: dict[str, Any] = {"max_restarts": restarts, "environment": settings}
        self._spec["checkpoint_interval"] = 0.5
        self._id = ""

    def start(self, size: int) -> None:
        """Start the service, and submit the job."""
        self._service.start()
        self._service.ready()
        files = {path.name: path.read_bytes() for path in TRAIN.parent.glob("*.py")}
        command = ["python", TRAIN.name, *self._place.script_options]
        answer = self._service.post_archive(tar(files), command=command, min=1, max=size, **self._spec)
        if not answer.ok:
            raise NotResizedError(f"was refused: {answer.text}")
        self._id = answer.json()["id"]

    def resize(self, size: int) -> None:
        """Change what the job can use at most, as soon as the service answers."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            answer = self._ask(lambda: self._service.ask("PATCH", f"/jobs/{self._id}", json={"max": size}))
            if answer is not None and (answer.ok or answer.status_code == requests.codes.conflict):
                return
            self.revive()
            time.sleep(POLL)
        raise NotResizedError(f"could not be resized for {TIMEOUT:g} s")

    def ended(self) -> str | None:
        """How it ended; None while it runs, or the service does not answer."""
        answer = self._ask(lambda: self._service.ask("GET", f"/jobs/{self._id}"))
        job = answer.json() if answer is not None and answer.ok else {"state": "unknown"}
        ends = {"succeeded": "exit 0", "failed": f"failure: {job.get('failure')}", "stopped": "a stop"}
        return ends.get(job["state"])

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What the job has told of these kinds so far."""
        return [event for event in self._service.events(self._id) if event["event"] in kinds]

    def leavers(self) -> list[str]:
        """Nobody asks here."""
        return []

    def revive(self) -> None:
        """Start the service again, if it was killed.

        Raises:
            NotResizedError: it has ended by itself.
        """
        assert self._service.process is not None
        ended = exit_text(self._service.process.poll())
        if ended not in (None, signal.SIGKILL.name):
            raise NotResizedError(f"has lost its service by {ended}: {self._service.report()}")
        if ended is not None:
            self._service.start()

    def close(self) -> None:
        """End the service.

        Raises:
            NotResizedError: it does not end well.
        """
        self.revive()
        self._service.ready()
        code = self._service.end()
        if code != 0:
            raise NotResizedError(f"has left a service that ended with exit {code}: {self._service.report()}")

    @staticmethod
    def _ask(ask: Callable[[], requests.Response]) -> requests.Response | None:
        """The answer; None from a service that is gone, or was stopped meanwhile."""
        try:
            return ask()
        except (requests.RequestException, FileNotFoundError):
            return None


class Run:
    """One job, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        changes: list[Change],
        faults: list[str],
        strikes: list[Strike],
        args: argparse.Namespace,
    ) -> None:
        self.folder = folder
        self.changes = changes
        self.faults = faults
        self.strikes = list(strikes)
        self.struck: list[str] = []
        self.args = args
        self.mark = uuid.uuid4().hex
        script = folder / "faults"
        script.write_text("\n".join(["faults = [", *(f"    {row}," for row in faults), "]\n"]))
        settings = {MARK: self.mark, "OMP_NUM_THREADS": "1", "EDT_FAULTS": str(script)}
        options = [str(folder), "--delay", str(args.delay)]
        place = Place(folder, options, os.environ | settings)
        launching: list[object] = []
        if args.restarts:
            launching += ["--max-restarts", args.restarts, "--checkpoint-interval", 0.5]
        if {"stop", "hang"} & set(args.kinds):
            launching += ["--hang-timeout", 3]
        self.job: Alone | Pooled = (
            Pooled(place, args.restarts, settings) if args.service else Alone(place, TRAIN, launching)
        )
        self.changed_at: list[float] = []

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
            self._strike()
        wanted = self.changes[-1].slots
        self._wait_for(lambda: self.size() == wanted, f"reach {wanted} workers at last")
        formed = self.job.events("world")[-1]["time"]
        report.figures["from the last change to its world"] = (
            f"{max(0.0, formed - self.changed_at[-1]):.2f} s"
        )
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
        self.job.close()

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def is_met() -> bool:
            self.job.revive()
            return condition()

        wait_for(is_met, self.args.limit, self.job, what)

    def _strike(self) -> None:
        """Do what is due after the present number of changes."""
        while self.strikes and self.strikes[0].after <= len(self.changed_at):
            strike = self.strikes.pop(0)
            workers = {line["pid"] for line in self.job.events("ready") if "pid" in line}
            victims = [each for each in self._members() if _is(strike.role, each, workers)]
            if not victims:
                continue
            victim = random.choice(victims)
            self.struck.append(f"{strike.role} {strike.signal.name}")
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.send_signal(strike.signal)
            if strike.signal is signal.SIGSTOP:
                threading.Timer(STOPPED, _go_on, [victim]).start()

    def _members(self) -> list[psutil.Process]:
        return [p for p in psutil.process_iter() if environment(p).get(MARK) == self.mark]

    def _let_it_train(self) -> float:
        """Wait until the job has trained since the last change, or `limit` seconds; how long that was.

        On a busy machine all changes would be over before the job had noticed the first.
        """
        began, since = time.monotonic(), self.changed_at[-1] if self.changed_at else 0.0
        while time.monotonic() - began < self.args.limit and not self.job.ended():
            self.job.revive()
            if any(event["time"] > since for event in self.job.events("progress", "resumed")):
                break
            time.sleep(POLL)
        return time.monotonic() - began

    def size(self) -> int | None:
        """Workers in the newest world."""
        worlds = self.job.events("world")
        return worlds[-1]["size"] if worlds else None

    def left_behind(self) -> list[str]:
        """Processes of the job, and their shared memory, that are there some time after its end."""
        deadline = time.monotonic() + END_LIMIT
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(POLL)
        pids = {str(line["pid"]) for line in self.job.events("ready") if "pid" in line}
        memory = [path.name for path in Path("/dev/shm").iterdir() if pids & set(path.name.split("_"))]
        return left + [f"/dev/shm/{name}" for name in memory]

    def _processes(self) -> list[str]:
        return [f"process {p.pid} ({p.name()})" for p in self._members() if p.is_running()]


def _is(role: str, process: psutil.Process, workers: set[int]) -> bool:
    with contextlib.suppress(psutil.Error):
        return ROLES[role](" ".join(process.cmdline()), process.pid in workers)
    return False


def _go_on(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.resume()


def count(run: Run, report: Report) -> None:
    """Fill in what the job has told."""
    worlds, resumed = run.job.events("world"), run.job.events("resumed")
    failed = run.job.events("failed")
    executions = history.read(run.folder)
    happened = len(list(run.folder.glob("faults.*.done")))
    report.figures |= {
        "changes made": str(len(run.changed_at)),
        "changes reached before the next one": str(reached(run.changes, run.changed_at, worlds)),
        "worlds formed": str(len(worlds)),
        "faults": f"{happened} of {len(run.faults)} found their victim",
        "strikes": f"{len(run.struck)} of {run.args.strikes}: "
        + ", ".join(f"{run.struck.count(each)} {each}" for each in sorted(set(run.struck))),
        "deaths survived": str(len(failed)),
        "restarts": str(len(run.job.events("restarting"))),
        "steps": f"{len(executions)}, {history.redone(executions)} of them begun again",
    }
    report.broken += proves_little(len(run.changed_at), len(worlds), len(run.faults), happened)
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
            f"{happened} of {faults} faults only found a victim; give them more seconds (--duration)"
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
        pauses = [event["pause"] for event in resumed if event["generation"] == world["generation"]]
        before = max((other["time"] for other in worlds if other["time"] < world["time"]), default=0.0)
        after_death = any(before < failure["time"] < world["time"] for failure in failed)
        kind = "after a death" if after_death else str(world["reason"])
        if pauses and world["previous_size"]:
            found.setdefault(kind, []).append(pauses[-1])
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
    parser.add_argument("--strikes", type=int, default=0, help="random signals to processes of the job")
    parser.add_argument("--service", action="store_true", help="run the job in a service's pool")
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
    strikes = draw_strikes(chance, args.strikes, len(changes), args.service)
    print(f"seed {seed}: {len(changes)} changes in {args.duration:g} s, and these faults:", flush=True)
    print("".join(f"    {line}\n" for line in faults), flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if args.logs:
            folder = args.logs.absolute()
            folder.mkdir(parents=True)
        report = survey(Run(folder, changes, faults, strikes, args))
    width = max(map(len, report.figures))
    for what, figure in report.figures.items():
        print(f"{what:{width}}  {figure}")
    for promise in report.broken:
        print(f"BROKEN: {promise}")
    sys.exit(1 if report.broken else 0)


if __name__ == "__main__":
    main()
