"""What others notice of an attack on a job service: `edt ps` and resizes of their job, before and during it.

The service runs as `edt serve` does, in a process of its own, with a job that trains. Quiet and attacked
times take turns. The exit code is 1 if one of a hundred calls of `edt ps` takes longer than a second in an
attack, or the median resize more than twice as long as in the quiet times beside it.
"""

import argparse
import multiprocessing
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from attacked.attacks import ATTACKS
from attacked.service import Service

PROCESSES = multiprocessing.get_context("fork")
"""Attacks have processes of their own, so that the measurement does not wait for them."""

SLOWEST = 1.0
"""Seconds that 99 of 100 calls of `edt ps` may take."""

SLOWER = 2.0
"""How many times as long a resize may take."""

SIZES = (2, 1)
"""Between which the job is resized."""

CALLS = 4
"""Calls of `edt ps` after each resize."""


@dataclass
class Noticed:
    """Seconds that calls of `edt ps` and resizes took."""

    calls: list[float] = field(default_factory=list)
    resizes: list[float] = field(default_factory=list)

    def row(self) -> str:
        """Median and slowest hundredth of the calls; median, least and most of the resizes."""
        return (
            f"{median(self.calls):8.2f} {hundredth(self.calls):7.2f}"
            f" {median(self.resizes):10.2f} ({min(self.resizes):.2f}-{max(self.resizes):.2f})"
        )


def hundredth(seconds: list[float]) -> float:
    """The time that 99 of 100 do not exceed."""
    return sorted(seconds)[-1 - len(seconds) // 100]


class Bystander:
    """Another user, whose job trains."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._token = service.user("ann")
        self._job = service.submit("pooled.py", "--steps", 10**6, token=self._token, min=1, max=max(SIZES))
        service.until_training(self._job)
        self._resize(min(SIZES))

    def look(self, noticed: Noticed, calls: int) -> None:
        """Resize the job there and back again and again, and call `edt ps` so often, after each resize."""
        for size in SIZES * (calls // (len(SIZES) * CALLS)):
            noticed.resizes.append(self._resize(size))
            for _ in range(CALLS):
                begin = time.monotonic()
                self._service.edt("ps", token=self._token).check_returncode()
                noticed.calls.append(time.monotonic() - begin)

    def _resize(self, size: int) -> float:
        begin = time.time()
        path = f"/jobs/{self._job}"
        self._service.ask("PATCH", path, token=self._token, json={"max": size}).raise_for_status()
        self._service.until(lambda: self._service.world(self._job) == size)
        worlds = [event for event in self._service.events(self._job) if event["event"] == "world"]
        return float(worlds[-1]["time"]) - begin


def measure(name: str, rounds: int, calls: int, folder: Path) -> tuple[Noticed, Noticed]:
    """Quiet and attacked."""
    service = Service(folder)
    quiet, attacked = Noticed(), Noticed()
    try:
        service.start()
        ann = Bystander(service.ready())
        for _ in range(rounds):
            ann.look(quiet, calls)
            stop = PROCESSES.Event()
            attack = PROCESSES.Process(target=ATTACKS[name], args=(service, stop))
            attack.start()
            try:
                time.sleep(5.0)  # it is under way
                ann.look(attacked, calls)
            finally:
                stop.set()
                attack.join()
            if attack.exitcode != 0:
                raise RuntimeError(f"{name}: it has failed itself")
    finally:
        service.close()
    return quiet, attacked


def main() -> int:
    """Measure each attack, on a service of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "attacks", nargs="*", default=list(ATTACKS), metavar="ATTACK", help=", ".join(ATTACKS)
    )
    parser.add_argument("--rounds", type=int, default=3, help="quiet and attacked times, each (3)")
    parser.add_argument("--calls", type=int, default=40, help="of `edt ps` in each of them (40)")
    options = parser.parse_args()
    if unknown := set(options.attacks) - set(ATTACKS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(ATTACKS)}")
    print(f"{'seconds':32} {'edt ps':>8} {'99 %':>7} {'resize':>10}")
    is_kept = True
    for name in options.attacks:
        with tempfile.TemporaryDirectory() as folder:
            quiet, attacked = measure(name, options.rounds, options.calls, Path(folder))
        times = median(attacked.resizes) / median(quiet.resizes)
        print(f"{name + ', quiet':32} {quiet.row()}")
        print(f"{name + ', attacked':32} {attacked.row()}  {times:.2f} times", flush=True)
        is_kept &= hundredth(attacked.calls) <= SLOWEST and times <= SLOWER
    return 0 if is_kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
