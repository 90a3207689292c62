"""What 20 resizes change in a training under `edt torchrun`: `examples/imagenet`, resized and not.

    python benchmarks/torchrun_resizes.py --resizes 20 --epochs 60

The program trains on scikit-learn's digits, with the same total batch on any number of workers. It runs with
2 workers from the start to the end, and again with 1 to 4: their number changes as soon as the last change is
in force. `benchmarks/resize/journal.py` runs it unchanged, and writes down the samples of every step.

Printed for both: epochs, optimizer steps, samples left out or used twice in an epoch, and the accuracy on the
samples that were held out. The exit code is 1 if epochs, steps or samples differ.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOURNAL = ROOT / "benchmarks" / "resize" / "journal.py"
PROGRAM = ROOT / "examples" / "imagenet" / "main.py"
SIZES = (1, 2, 3, 4)
POLL = 0.05


@dataclass(frozen=True)
class Outcome:
    """What became of a training."""

    resizes: int
    epochs: int
    steps: int
    samples: int
    missing: int
    repeated: int
    accuracy: float
    seconds: float

    @property
    def work(self) -> tuple[int, int, int, int, int]:
        """What resizes must not change."""
        return self.epochs, self.steps, self.samples, self.missing, self.repeated


class Training:
    """A training in a folder of its own."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self._folder = folder
        self._generation = 0
        self._args = args

    @contextmanager
    def running(self, size: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run it; it is ended with this context."""
        self.allocate(size)
        options = ["--nnodes", f"1:{max(SIZES)}", "--allocation", str(self._folder / "allocation")]
        program = ["--epochs", str(self._args.epochs), "--total-batch-size", str(self._args.batch)]
        program += ["--delay", str(self._args.delay), "--save-every", "5", "--lr", "0.02"]
        command = [sys.executable, "-m", "edt_launch.launcher.command", "--program", "torchrun", *options]
        with (self._folder / "stdout").open("wb") as stdout, (self._folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [*command, "--output-dir", str(self._folder / "out"), str(JOURNAL), str(PROGRAM), *program],
                cwd=self._folder,
                env=os.environ | {"OMP_NUM_THREADS": "1", "JOURNAL": str(self._folder)},
                stdout=stdout,
                stderr=stderr,
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def allocate(self, size: int) -> None:
        """Replace the allocation."""
        self._generation += 1
        beside = self._folder / "allocation.new"
        beside.write_text(f"# edt allocation v1 generation={self._generation}\nlocalhost:{size}\n")
        beside.rename(self._folder / "allocation")

    def sizes(self) -> list[int]:
        """Of its worlds so far."""
        path = self._folder / "out" / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event["size"] for event in events if event["event"] == "world"]

    def _steps(self) -> dict[tuple[int, int], list[int]]:
        """The samples of each step, by epoch and position: those of the last world that has begun it."""
        worlds: dict[tuple[int, int], dict[int, list[int]]] = {}
        for file in self._folder.glob("samples.*"):
            for line in file.read_text().splitlines():
                world, epoch, position, *samples = map(int, line.split())
                worlds.setdefault((epoch, position), {}).setdefault(world, []).extend(samples)
        return {step: by_world[max(by_world)] for step, by_world in worlds.items()}

    def outcome(self, seconds: float) -> Outcome:
        """What it has done."""
        printed = (self._folder / "stdout").read_text()
        accuracies = re.findall(r" \* epoch \d+  Acc@1 (\d+\.\d+)", printed)
        steps = self._steps()
        epochs: dict[int, Counter[int]] = {}
        for (epoch, _), samples in steps.items():
            epochs.setdefault(epoch, Counter()).update(samples)
        every = set().union(*epochs.values())
        return Outcome(
            resizes=len(self.sizes()) - 1,
            epochs=len(epochs),
            steps=len(steps),
            samples=sum(count.total() for count in epochs.values()),
            missing=sum(len(every - {*count}) for count in epochs.values()),
            repeated=sum(count.total() - len(count) for count in epochs.values()),
            accuracy=float(accuracies[-1]) if accuracies else 0.0,
            seconds=seconds,
        )


def train(folder: Path, resizes: int, args: argparse.Namespace) -> Outcome:
    """Train, with so many resizes."""
    folder.mkdir()
    training, sizes, began = Training(folder, args), random.Random(args.seed), time.monotonic()
    size, left = 2, resizes
    with training.running(size) as process:
        while process.poll() is None:
            if left and len(training.sizes()) == resizes - left + 1:
                size = sizes.choice([each for each in SIZES if each != size])
                training.allocate(size)
                left -= 1
            time.sleep(POLL)
    if process.returncode:
        print((folder / "stderr").read_text(), file=sys.stderr)
        raise SystemExit(f"the training has ended with exit code {process.returncode}")
    return training.outcome(time.monotonic() - began)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What resizes change in a training under edt torchrun.")
    parser.add_argument("--resizes", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=48, help="samples of a step, over all workers")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds that a step sleeps")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    found = []
    with tempfile.TemporaryDirectory(prefix="resizes-") as name:
        for folder, resizes in (("static", 0), ("resized", args.resizes)):
            outcome = train(Path(name) / folder, resizes, args)
            found.append(outcome)
            print(
                f"{folder}: {outcome.resizes} resizes, {outcome.epochs} epochs, {outcome.steps} steps, "
                f"{outcome.samples} samples ({outcome.missing} left out, {outcome.repeated} used twice), "
                f"Acc@1 {outcome.accuracy:.2f} %, {outcome.seconds:.0f} s",
                flush=True,
            )
    if found[1].resizes < args.resizes:
        sys.exit(f"{found[1].resizes} of {args.resizes} resizes: give more --epochs")
    sys.exit(found[0].work != found[1].work)


if __name__ == "__main__":
    main()
