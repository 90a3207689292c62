"""Real jobs whose workers share one GPU: the same bits, resizes, and a loss inside a collective.

    python benchmarks/gpu_jobs.py bits FOLDER
    python benchmarks/gpu_jobs.py resizes FOLDER
    python benchmarks/gpu_jobs.py loss FOLDER
    python benchmarks/gpu_jobs.py bits FOLDER --device cpu

- `bits`: the training of `gpu_train.py` with 1, 2 and 4 workers, over NCCL and at the same time over Gloo:
  weights, buffers and momenta must be the same bits in the end.
- `resizes`: over NCCL, a job of one worker grows to 2 and 4 and shrinks to 2, and ends with these bits, too.
- `loss`: over NCCL, one of three workers gets SIGKILL while the others are inside the all-reduce of a
  gradient and wait for its part. Printed is for how long the others stood still; they must end with the same
  bits. If they hang, the stacks of their threads are printed. With `--backwards 2` they wait for nothing but
  the gradient, so that one that was reported as summed, and was not, would show in the bits.

With `--device cpu` the same jobs run without a GPU, over Gloo alone. FOLDER keeps all that the jobs have
written. The last line of the output is a JSON object with the figures. Exit code 1 says that a job has not
done what it should.
"""

import argparse
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elastic_jobs import MARK, EdtJob, NotResizedError, Place, end, wait_for
from resize import measure_loss, newest_world

SCRIPT = Path(__file__).with_name("gpu_train.py")
SIZES = (1, 2, 4)
RESIZES = (1, 2, 4, 2)
LOSS = 3
"""Workers before the loss."""

SHOWN = 25
"""Lines of a job's output that are shown when it has failed."""


class NotAsPromisedError(Exception):
    """A job has ended, but not as it should."""


@dataclass(frozen=True)
class Alone:
    """A job that was left alone: its milliseconds a step, and what its workers ended with."""

    transport: str
    workers: int
    ms: float
    digests: tuple[str, ...]


@dataclass
class Running:
    """A job under way."""

    job: EdtJob
    place: Place
    limit: float

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something, `limit` seconds at most."""
        wait_for(condition, self.limit, self.job, what)

    def until_trained(self, size: int, steps: int = 3) -> None:
        """Wait until so many steps have been done by a world of that size."""

        def reached() -> bool:
            now, done = newest_world(self.place)
            return now == size and done >= steps

        self.until(reached, f"train with {size} workers")

    def ended(self) -> None:
        """Let the job hurry, and wait for its end.

        Raises:
            NotResizedError: it has failed, or does not end.
        """
        (self.place.folder / "hurry").touch()
        deadline = time.monotonic() + self.limit
        while (ended := self.job.ended()) is None:
            if time.monotonic() > deadline:
                raise NotResizedError(f"did not end within {self.limit:g} s")
            time.sleep(0.05)
        if ended != "exit 0":
            raise NotResizedError(f"the job ended with {ended}")

    def show(self) -> None:
        """Print where the workers are, and the end of what the job has said."""
        for worker in sorted({step.worker for step in self.place.steps()}):
            try:
                os.kill(worker, signal.SIGUSR2)
            except ProcessLookupError:
                continue
        time.sleep(1)  # they write
        for log in [
            self.place.folder / "job.log",
            *sorted((self.place.folder / "out" / "log").glob("rank.*")),
        ]:
            print(f"--- {log}", *log.read_text(errors="replace").splitlines()[-SHOWN:], sep="\n")
        for event in self.job.events("failed", "waiting", "restarting", "finished", "ended"):
            print("event", json.dumps(event))


@contextmanager
def started(
    name: str, size: int, args: argparse.Namespace, transport: str, *options: object
) -> Iterator[Running]:
    """A job with that many workers; nothing of it is left afterwards."""
    folder: Path = args.folder / name
    folder.mkdir(parents=True)
    mark = uuid.uuid4().hex
    settings = {MARK: mark, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    script_options = [
        *(str(folder), "--device", args.device, "--transport", transport),
        *("--steps", str(args.steps), "--width", str(args.width), "--backwards", str(args.backwards)),
        *map(str, options),
    ]
    place = Place(folder, script_options, os.environ | settings)
    running = Running(EdtJob(place, SCRIPT), place, args.limit)
    running.job.start(size)
    try:
        yield running
    except NotResizedError:
        running.show()
        raise
    finally:
        end(mark)


def digests(folder: Path, size: int) -> set[str]:
    """What the workers of the last world ended with.

    Raises:
        NotAsPromisedError: there are others than expected.
    """
    finals = [json.loads(file.read_text()) for file in sorted(folder.glob("final.*.json"))]
    if [final["size"] for final in finals] != [size] * size:
        raise NotAsPromisedError(f"{folder} should have the ends of {size} workers, and has {finals}")
    return {str(final["digest"]) for final in finals}


def train(size: int, names: tuple[str, ...], args: argparse.Namespace) -> list[Alone]:
    """Jobs that are left alone, one for each transport, beside each other; those done already are not run.

    Raises:
        NotAsPromisedError: one has failed; the others have been waited for.
    """
    folders = {
        name: args.folder / f"{name}-{size}-{args.width}-{args.steps}-{args.backwards}" for name in names
    }
    problems = []
    with ExitStack() as stack:
        missing = [name for name in names if not list(folders[name].glob("final.*.json"))]
        jobs = [stack.enter_context(started(folders[name].name, size, args, name)) for name in missing]
        for name, running in zip(missing, jobs, strict=True):
            try:
                running.ended()
            except NotResizedError as error:
                running.show()
                problems.append(f"{name}, {size} workers: {error}")
    found = []
    for name, folder in folders.items():
        if list(folder.glob("final.*.json")):
            times = sorted(step.time for step in Place(folder, [], {}).steps())
            seconds = (times[-1] - times[0]) / max(args.steps - 1, 1)
            found.append(Alone(name, size, 1000 * seconds, tuple(sorted(digests(folder, size)))))
            print(
                f"{name}, {size} workers: {found[-1].ms:7.1f} ms a step, {', '.join(found[-1].digests)}",
                flush=True,
            )
    if problems:
        raise NotAsPromisedError("; ".join(problems))
    return found


def transports(args: argparse.Namespace) -> tuple[str, ...]:
    return ("nccl", "gloo") if args.device == "cuda" else ("gloo",)


def bits(args: argparse.Namespace) -> dict[str, Any]:
    done: list[Alone] = []
    problems = []
    for size in args.sizes:
        try:
            done += train(size, transports(args), args)
        except NotAsPromisedError as error:
            problems.append(str(error))
    different = {each for job in done for each in job.digests}
    if len(different) > 1:
        problems.append(f"{len(different)} different ends, where all should be the same bits")
    if problems:
        raise NotAsPromisedError("; ".join(problems))
    return {"jobs": [asdict(job) for job in done]}


def resizes(args: argparse.Namespace) -> dict[str, Any]:
    transport = transports(args)[0]
    with started("resizes", RESIZES[0], args, transport, "--delay", args.delay) as running:
        running.until_trained(RESIZES[0])
        for size in RESIZES[1:]:
            running.job.resize(size)
            running.until_trained(size)
        running.ended()
        resumed = running.job.events("resumed")
        leavers = running.job.leavers()
    for event in resumed:
        phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in event["phases"].items())
        print(
            f"{event['from']} -> {event['to']}: stood still for {event['pause']:.2f} s ({phases})", flush=True
        )
    check_end("resizes", RESIZES[-1], transport, args)
    if failed := [leaver for leaver in leavers if leaver != "exit 0"]:
        raise NotAsPromisedError(f"removed workers ended with {failed}")
    keys = ("from", "to", "pause", "phases")
    return {"transport": transport, "resizes": [{key: event[key] for key in keys} for event in resumed]}


def loss(args: argparse.Namespace) -> dict[str, Any]:
    transport = transports(args)[0]
    kill = ("--kill-rank", LOSS - 1, "--kill-step", args.kill_step, "--kill-after", args.kill_after)
    with started("loss", LOSS, args, transport, "--delay", args.delay, *kill) as running:
        folder = running.place.folder
        running.until((folder / "killed").exists, "come to the kill")
        victim, moment = (folder / "killed").read_text().split()

        def trains_on() -> bool:
            return any(step.time > float(moment) and step.size == LOSS - 1 for step in running.place.steps())

        running.until(trains_on, "train on without the worker")
        running.job.resize(LOSS - 1)
        found = measure_loss(running.place.steps(), float(moment), int(victim))
        running.ended()
        failed = running.job.events("failed")
    print(
        f"the others stood still for {found.pause:.2f} s, {found.repeated} steps repeated; "
        f"workers that died: {len(failed)}",
        flush=True,
    )
    if (folder / "too_late").exists():
        raise NotAsPromisedError("the all-reduce was over before the kill: give a smaller --kill-after")
    check_end("loss", LOSS - 1, transport, args)
    if len(failed) != 1:
        raise NotAsPromisedError(f"one worker was killed, and {len(failed)} have failed")
    return {"transport": transport, "seconds": found.pause, "repeated": found.repeated}


def check_end(name: str, size: int, transport: str, args: argparse.Namespace) -> None:
    """Check that a job has ended with the bits of one that was left alone.

    Raises:
        NotAsPromisedError: it has not.
    """
    found, (alone,) = digests(args.folder / name, size), train(1, (transport,), args)
    print(f"ended with {', '.join(sorted(found))}", flush=True)
    if found != set(alone.digests):
        raise NotAsPromisedError("it should have ended with the same bits as a job of one worker")


def main() -> None:
    parser = argparse.ArgumentParser(description="Real jobs whose workers share one GPU.")
    parser.add_argument("part", choices=["bits", "resizes", "loss"])
    parser.add_argument(
        "folder", type=Path, help="what the jobs write; finished ones of a run before are used"
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--width", type=int, default=512, help="of the model; sets its number of weights")
    parser.add_argument("--backwards", type=int, default=1, help="backward passes of a micro-batch")
    parser.add_argument("--steps", type=int, default=60, help="optimizer steps of a job")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="workers of the jobs of bits")
    parser.add_argument(
        "--delay", type=float, default=0.5, help="seconds of a step before its resizes are done"
    )
    parser.add_argument("--kill-step", type=int, default=8)
    parser.add_argument("--kill-after", type=float, default=0.5, help="seconds in the all-reduce")
    parser.add_argument("--limit", type=float, default=40, help="seconds for each thing that is waited for")
    args = parser.parse_args()
    args.folder = args.folder.absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave no job behind
    parts: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
        "bits": bits,
        "resizes": resizes,
        "loss": loss,
    }
    try:
        figures = parts[args.part](args)
    except (NotResizedError, NotAsPromisedError) as error:
        raise SystemExit(f"{args.part}: {error}") from None
    print(json.dumps({"part": args.part, "device": args.device, **figures}))


if __name__ == "__main__":
    main()
