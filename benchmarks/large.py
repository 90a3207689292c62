"""What a large model costs to resize, in time and memory, beside bare copies and an ordinary loop.

    python benchmarks/large.py
    python benchmarks/large.py --parameters 30e6 --reductions ring exact --rounds 3

A GPT-2-like model on random tokens (`large/train.py`) is trained with AdamW, whose state takes 12 bytes a
parameter with the parameters. In every round an ordinary loop runs in one process; then, for each kind of
reduction, a job of `edt-launch` with 1 worker, which grows to 2, shrinks to 1, grows again and loses a worker
to SIGKILL. Workers compute on one thread.

- `pause`: from the last step at the old size to the first one at the new size.
- `transfer`: the phase of that name, beside a bare broadcast of as many bytes by the same two workers, in
  pieces as large and to memory as new, and a bare copy within one worker's memory.
- `peak`: the most memory that a worker has had (VmHWM), less what it had when it had imported everything,
  beside the ordinary loop's. `by part` is what stays from step to step; the rest is activations and
  temporaries.
- `first step`: the time of the job's first step over the median of those that follow at the same size, beside
  the same of the ordinary loop.

Printed are medians with the smallest and the largest. The last line is a JSON object with all figures.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from elastic_jobs import MARK, POLL, EdtJob, NotResizedError, Place, end

SCRIPT = Path(__file__).parent / "large" / "train.py"
Row = dict[str, Any]


class Job:
    """One training, and what its workers have written down."""

    def __init__(self, folder: Path, limit: float, options: Sequence[object]) -> None:
        self.mark = uuid.uuid4().hex
        self._limit = limit
        settings = {MARK: self.mark, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self._place = Place(folder, [str(folder), *map(str, options)], os.environ | settings)
        self.edt = EdtJob(self._place, SCRIPT)

    def rows(self) -> list[Row]:
        """All rows, in the order of time."""
        found: list[Row] = []
        for file in self._place.folder.glob("trace.*"):
            lines = file.read_text().splitlines(keepends=True)
            worker = int(file.suffix[1:])
            found += [json.loads(line) | {"worker": worker} for line in lines if line.endswith("\n")]
        return sorted(found, key=lambda row: row["time"])

    def steps(self) -> list[Row]:
        """Those of steps."""
        return [row for row in self.rows() if "step" in row]

    def start(self, steps: int) -> None:
        """Start the job with one worker, and have it trained for so many steps."""
        self.edt.start(1)
        self._trained([], 1, steps)

    def resize(self, size: int, steps: int) -> float:
        """Have the job trained at that size for so many steps; the pause in seconds."""
        before = self.steps()
        self.edt.resize(size)
        return self._trained(before, size, steps)

    def kill(self, steps: int) -> float:
        """Kill the younger of two workers; the pause in seconds."""
        before = self.steps()
        os.kill(before[-1]["worker"] if len(before) == 1 else self._youngest(before), signal.SIGKILL)
        self.edt.resize(1)
        return self._trained(before, 1, steps)

    def _youngest(self, rows: Sequence[Row]) -> int:
        first = {row["worker"]: row["time"] for row in reversed(rows)}
        return max(first, key=lambda worker: first[worker])

    def _trained(self, before: Sequence[Row], size: int, steps: int) -> float:
        deadline = time.monotonic() + self._limit
        while True:
            after = [row for row in self.steps() if not before or row["time"] > before[-1]["time"]]
            new = [row for row in after if row["size"] == size]
            if len({row["step"] for row in new}) >= steps:
                old = [row for row in [*before, *after] if row["time"] < new[0]["time"]]
                return float(new[0]["time"] - old[-1]["time"]) if old else 0.0
            if self.edt.ended() is not None or time.monotonic() > deadline:
                raise NotResizedError((self._place.folder / "job.log").read_text(errors="replace")[-3000:])
            time.sleep(POLL)


def step_ratio(rows: Sequence[Row]) -> float:
    """The time of a first step over the median of the others; the first row was written before it."""
    times = [after["time"] - before["time"] for before, after in itertools.pairwise(rows)]
    return float(times[0] / median(times[1:]))


def ordinary(options: Sequence[object], steps: int) -> Row:
    """The figures of the ordinary loop."""
    with tempfile.TemporaryDirectory(prefix="large-") as name:
        command = [sys.executable, SCRIPT, name, *options, "--plain", steps]
        subprocess.run(list(map(str, command)), check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        (trace,) = Path(name).glob("trace.*")
        rows = [json.loads(line) for line in trace.read_text().splitlines()]
    return {
        "parameters": rows[-1]["parameters"],
        "peak": rows[-1]["peak"],
        "first_step": step_ratio(rows),
    }


def elastic(options: Sequence[object], args: argparse.Namespace) -> Row:
    """The figures of a job that is resized and loses a worker."""
    with tempfile.TemporaryDirectory(prefix="large-", ignore_cleanup_errors=True) as name:
        job = Job(Path(name), args.limit, options)
        try:
            pauses: dict[str, float] = {}
            job.start(args.steps)
            alone = job.rows()
            pauses["1 -> 2"] = job.resize(2, args.steps)
            pauses["2 -> 1"] = job.resize(1, args.steps)
            job.resize(2, args.steps)
            pauses["kill -9"] = job.kill(args.steps)
            rows, resumed = job.rows(), job.edt.events("resumed")
        finally:
            end(job.mark)
    steps = [row for row in rows if "step" in row]
    count = steps[0]["parameters"]
    bare = [row for row in rows if "broadcast" in row]
    transfers = [event["phases"]["transfer"] for event in resumed if event["to"] == 2]
    peaks = {row["worker"]: row["peak"] for row in rows}
    first = steps[0]["worker"]
    return {
        "pauses": pauses,
        "transfer": transfers[:1],
        "broadcast": [max(row["broadcast"] for row in bare[:2])],
        "copy": [median(row["copy"] for row in bare)],
        "peak": peaks[first],
        "newcomers_peak": max(peak for worker, peak in peaks.items() if worker != first),
        "parts": {part: size / count for part, size in alone[-1]["parts"].items()},
        "first_step": step_ratio(alone),
    }


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median, smallest and largest."""
    low, middle, high = (f"{f(values):.{digits}f}" for f in (min, median, max))
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle


def describe(kind: str, found: Sequence[Row], plain: Sequence[Row]) -> list[str]:
    """The figures of one kind of reduction, in lines."""
    count = plain[0]["parameters"]
    size = 12 * count / 1e9
    own = [row["peak"] / p["peak"] for row, p in zip(found, plain, strict=True)]
    new = [row["newcomers_peak"] / p["peak"] for row, p in zip(found, plain, strict=True)]
    first = [row["first_step"] for row in found]
    ratios = [t / b for row in found for t, b in zip(row["transfer"], row["broadcast"], strict=True)]
    parts = ", ".join(f"{part} {share:.1f}" for part, share in found[-1]["parts"].items())
    return [
        f"{kind}:",
        *(
            f"  pause {name:8} {spread([row['pauses'][name] for row in found])} s"
            for name in found[0]["pauses"]
        ),
        *(
            f"  {name:14} {spread([seconds / size for row in found for seconds in row[name]])} s a GB"
            for name in ("transfer", "broadcast", "copy")
        ),
        f"  transfer over broadcast {spread(ratios)}",
        f"  peak {spread([row['peak'] / count for row in found], 1)} bytes a parameter",
        f"  peak over the ordinary loop's {spread(own)}, newcomers' {spread(new)}",
        f"  bytes a parameter by part: {parts}",
        f"  first step over later ones {spread(first)}",
    ]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What a large model costs to resize, in time and memory.")
    parser.add_argument("--parameters", type=float, default=200e6, help="of the model, about")
    parser.add_argument(
        "--reductions", nargs="+", choices=["ring", "exact", "exact32"], default=["ring", "exact"]
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6, help="at each size")
    parser.add_argument("--checkpoints", action="store_true", help="have checkpoints written")
    parser.add_argument("--validate", action="store_true", help="average a value between step and commit")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds until a job counts as stuck")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    common: list[object] = ["--parameters", args.parameters]
    extra = [f"--{name}" for name in ("checkpoints", "validate") if getattr(args, name)]
    plain: list[Row] = []
    found: dict[str, list[Row]] = {kind: [] for kind in args.reductions}
    for number in range(args.rounds):
        plain.append(ordinary(common, args.steps))
        for kind, rows in found.items():
            rows.append(elastic([*common, *extra, "--reduction", kind], args))
            print(f"round {number + 1}, {kind}: peak {rows[-1]['peak'] / plain[-1]['peak']:.2f}", flush=True)
    count = plain[0]["parameters"]
    peaks = spread([row["peak"] / count for row in plain], 1)
    print(f"\n{count:,} parameters, AdamW, {12 * count / 1e9:.2f} GB of state")
    print(f"ordinary loop: peak {peaks} bytes a parameter", end="")
    print(f", first step over later ones {spread([row['first_step'] for row in plain])}")
    for kind, rows in found.items():
        print("\n".join(describe(kind, rows, plain)))
    print(json.dumps({"plain": plain} | found))


if __name__ == "__main__":
    main()
