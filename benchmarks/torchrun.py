"""How long a program for torchrun stands still when resized: `edt torchrun` beside torchrun, in turns.

    python benchmarks/torchrun.py --rounds 5

All run `benchmarks/resize/train_torchrun.py`, which saves a checkpoint after every step, on this machine:
grown from 2 workers to 4, shrunk from 4 to 2, and with one of 3 workers killed by SIGKILL. Measures and
torchrun's settings are those of `benchmarks/resize.py`. The third system is torchrun with the rendezvous back
end `edt`: its nodes come from an allocation, without a last call. The last column is torchrun's pause divided
by the other's in the same round: median, with the smallest and largest.

A step counts as repeated when any rank had done it.
"""

import argparse
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import elastic_jobs
import resize
from elastic_jobs import SCRIPTS, SYSTEMS, EdtJob, Job, Place, exit_text
from resize import SIZES, Outcome

SCRIPT = SCRIPTS / "train_torchrun.py"


class AllocatedJob:
    """Plain torchrun with its rendezvous from an allocation: four agents, of which some have no place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._generation = 0
        self._agents: list[subprocess.Popen[bytes]] = []

    def start(self, size: int) -> None:
        """Write the allocation and start all agents."""
        self.resize(size)
        for number in range(4):
            command = (
                sys.executable,
                "-m",
                "torch.distributed.run",
                "--nnodes",
                "1:4",
                "--nproc-per-node",
                1,
            )
            rendezvous = ("--rdzv-backend", "edt", "--rdzv-endpoint", self._place.folder / "allocation")
            options = ("--max-restarts", 3, SCRIPT, *self._place.script_options)
            self._agents.append(self._place.spawn(f"agent{number}", *command, *rendezvous, *options))

    def resize(self, size: int) -> None:
        """Replace the allocation."""
        self._generation += 1
        text = f"# edt allocation v1 generation={self._generation}\nlocalhost:{size}\n"
        self._place.write("allocation", text)

    def ended(self) -> str | None:
        """How the first agent that has ended did."""
        codes = [code for agent in self._agents if (code := agent.poll()) is not None]
        return f"agent {exit_text(codes[0])}" if codes else None

    def leavers(self) -> list[str]:
        """Agents without a place stay."""
        return ["waits"] * 4


def edt_torchrun(place: Place) -> Job:
    """`edt torchrun`, told by its allocation file; its options are those of torchrun and of edt-launch."""
    return EdtTorchrunJob(place, SCRIPT, ("--program", "torchrun", "--nnodes", "1:4", "--max-restarts", 3))


class EdtTorchrunJob(EdtJob):
    """`edt torchrun`: sizes come from --nnodes."""

    def start(self, size: int) -> None:
        """Write the allocation and start the launcher."""
        self.resize(size)
        folder = self._place.folder
        self._process = self._place.spawn(
            "job",
            *(sys.executable, "-m", "edt_launch.launcher.command", *self._options),
            *("--network-interface", "lo", "--allocation", folder / "allocation"),
            *("--output-dir", folder / "out", self._script, *self._place.script_options),
        )


OURS: dict[str, tuple[str, Callable[[Place], Job]]] = {
    "edt-torchrun": ("edt torchrun", edt_torchrun),
    "torchrun": elastic_jobs.SYSTEMS["torchrun"],
    "handler": ("torchrun --rdzv-backend edt", AllocatedJob),
}


def ratios(ours: list[Outcome], torchrun: list[Outcome]) -> str:
    """Torchrun's pause divided by the other's, round by round."""
    pairs = zip(ours, torchrun, strict=True)
    found = sorted(
        peer.pause / own.pause
        for own, peer in pairs
        if not own.problem and not peer.problem and own.pause > 0
    )
    return f"{median(found):.1f} ({found[0]:.1f}-{found[-1]:.1f})" if found else ""


def table(results: dict[tuple[str, str], list[Outcome]]) -> str:
    """A row for each kind of resize and system."""
    rows = [["resize", "system", "pause", "min-max", "n", "repeated", "times shorter than torchrun"]]
    for (phase, system), outcomes in results.items():
        done = [outcome for outcome in outcomes if outcome.problem is None]
        pauses = [outcome.pause for outcome in done]
        repeated = [outcome.repeated for outcome in done]
        spread = f"{min(pauses):.2f}-{max(pauses):.2f}" if done else ""
        pause = f"{median(pauses):.2f} s" if done else "did not resize"
        steps = f"{min(repeated)}-{max(repeated)}" if done else ""
        ratio = ratios(outcomes, results[phase, "torchrun"])
        figures = [pause, spread, f"{len(done)}/{len(outcomes)}", steps, ratio]
        old, new = SIZES[phase]
        rows.append(
            [f"kill -9 of {old}" if phase == "kill" else f"{old} -> {new}", SYSTEMS[system][0], *figures]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How long programs for torchrun stand still when resized.")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each system and kind of resize")
    parser.add_argument("--only", choices=SIZES, help="one kind of resize")
    parser.add_argument("--steps", type=int, default=40, help="steps before the resize, and after it")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a step sleeps")
    parser.add_argument(
        "--startup", type=float, default=0, help="seconds that the script sleeps at its start"
    )
    parser.add_argument("--limit", type=float, default=120.0, help="seconds until a job counts as stuck")
    parser.add_argument("--logs", type=Path, help="folder for what jobs have printed that did not resize")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: leave no job behind
    SYSTEMS.update(OURS)
    phases = [args.only] if args.only else list(SIZES)
    results: dict[tuple[str, str], list[Outcome]] = {(p, s): [] for p in phases for s in OURS}
    for number, phase in itertools.product(range(1, args.rounds + 1), phases):
        for system in OURS:
            outcome = resize.run(system, phase, args)
            results[phase, system].append(outcome)
            print(f"round {number}, {phase}, {OURS[system][0]}: {resize.describe(outcome)}", flush=True)
    print(f"\n{table(results)}")


if __name__ == "__main__":
    main()
