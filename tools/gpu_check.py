"""Check a machine with a GPU: build for it, run what needs one, and leave a report, within eight minutes.

``make gpu-check WHEELS=DIR OUT=DIR`` runs this. Its parts run one after the other, the most important first,
each with a limit of its own. ``OUT/report.json`` and ``OUT/report.txt`` are replaced before and after each
part, so a check that is cut short leaves what it has found; ``OUT/<part>.log`` has a part's whole output.

Exit codes: 0 all parts passed, 1 a part failed, 2 usage, 3 none failed but not all were run, 128 + n ended by
signal n. Standard library only: it runs before anything is installed.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from gpu_check_parts import BIN, ROOT, SET_UP, Part, parts
from gpu_check_report import Outcome, Report, describe_machine, read

LIMIT = 470.0
"""Seconds for the whole check: with what ends the last part, it fits into a command limited to 480."""

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL for a part that has used up its time."""

CUT_GRACE = 1.0
"""The same when the whole check is told to end: whoever does so may not wait for long."""

LEAST = 5.0
"""Seconds without which no part is begun."""

MARK = "EDT_GPU_CHECK"
"""Environment variable by which the processes of a part are found, in whatever session they are."""


class CutError(Exception):
    """The check was told to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"ended by {signal.Signals(number).name}")


# Running a part.


def environment(mark: str) -> dict[str, str]:
    """Return the environment of a part: the project's commands first, one GPU, nothing of a calling make."""
    made = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHONHOME", "PYTHONPATH"}
    variables = {name: value for name, value in os.environ.items() if name not in made}
    return variables | {
        MARK: mark,
        "PATH": os.pathsep.join([str(BIN), variables.get("PATH", os.defpath)]),
        "CUDA_VISIBLE_DEVICES": variables.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0],
        "NCCL_DEBUG": variables.get("NCCL_DEBUG", "WARN"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONUNBUFFERED": "1",
    }


def run(part: Part, log: Path, limit: float) -> Outcome:
    """Run a part to its end or its limit; none of its processes is left.

    Raises:
        CutError: The check was told to end; the part's processes are ended, too.
    """
    mark, begin = uuid.uuid4().hex, time.monotonic()
    process = None
    try:
        process = start(part, log, mark)
        code = process.wait(timeout=limit)
    except OSError as error:
        return Outcome("failed", reason=f"cannot run {part.command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        end(process, mark, GRACE)
        reason = f"not done within {limit:.0f} s, and ended"
        return replace(read(log), status="timed out", seconds=time.monotonic() - begin, reason=reason)
    except BaseException:
        end(process, mark, CUT_GRACE)
        raise
    seconds = time.monotonic() - begin
    end(process, mark, 0.0)
    outcome = replace(read(log), seconds=seconds)
    if code != 0:
        how = f"exit code {code}" if code > 0 else signal.Signals(-code).name
        return replace(outcome, status="failed", reason=how)
    if part.refused and (found := re.search(part.refused, log.read_text(errors="replace"))):
        return replace(outcome, status="failed", reason=f"its output says: {found[0]}")
    return outcome


def start(part: Part, log: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start a part in a session of its own, with its output in `log`."""
    with log.open("wb") as output:
        output.write(f"$ {' '.join(part.command)}\n".encode())
        output.flush()
        return subprocess.Popen(
            part.command, cwd=ROOT, env=environment(mark), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def end(process: subprocess.Popen[bytes] | None, mark: str, grace: float) -> None:
    """End a part's process group, and whatever else carries its mark: SIGTERM, and SIGKILL after a grace."""
    deadline = time.monotonic() + grace
    if process is not None and process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline and (process.poll() is None or marked(mark)):
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for _ in range(20):  # what was just forked is not in the first list
        left = marked(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.05)


def marked(mark: str) -> list[int]:
    """Return the processes that were started with this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid, variables in environments() if wanted in variables.split(b"\0")]


def environments() -> Iterator[tuple[int, bytes]]:
    """Yield the number and the environment of every process whose environment can be read."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "environ").read_bytes()


def obstacle(part: Part, outcomes: Mapping[str, Outcome], has_gpu: bool, left: float) -> Outcome | None:
    """Return why a part is not run, as its outcome; None if it is.

    Args:
        part: The next one.
        outcomes: Those of the parts before; a part that is not among them was left out on purpose.
        has_gpu: Whether the machine has one, or none is needed in this run.
        left: Seconds until the whole check has to end.
    """
    if part.needs_gpu and not has_gpu:
        return Outcome("skipped", reason="no GPU")
    for name in part.needs:
        if name in outcomes and outcomes[name].status not in ("passed", "rehearsed"):
            return Outcome("not run", reason=f"needs {name}: {outcomes[name].status}")
    return Outcome("not run", reason="no time was left") if left < LEAST else None


# The whole.


def check(report: Report, has_gpu: bool, limit: float, rehearsal: bool = False) -> int:
    """Run all parts of a report and return the exit code.

    Args:
        report: Without outcomes; written before and after each part.
        has_gpu: Whether the machine has one, or none is needed in this run.
        limit: Seconds for all parts together.
        rehearsal: Whether parts that need a GPU run without one, and so never count as passed.
    """
    deadline = time.monotonic() + limit
    try:
        for part in report.parts:
            left = deadline - time.monotonic() - GRACE
            outcome = obstacle(part, report.outcomes, has_gpu, left)
            if outcome is None:
                report.outcomes[part.name] = Outcome("running")
                report.write()
                print(f"{part.name}: {part.why} ...", flush=True)
                outcome = run(part, report.folder / f"{part.name}.log", min(part.limit, left))
                if rehearsal and part.needs_gpu and outcome.status == "passed":
                    outcome = replace(outcome, status="rehearsed", reason="not on a GPU")
            report.outcomes[part.name] = outcome
            report.write()
            discard_checkpoints(report.folder / "jobs")
            print(f"{part.name}: {outcome.status} {outcome.reason} ({outcome.seconds:.0f} s)", flush=True)
    except CutError as error:
        report.note_cut(str(error))
        return 128 + error.number
    return {"passed": 0, "failed": 1}.get(report.result, 3)


def discard_checkpoints(jobs: Path) -> None:
    """Remove what jobs have saved of their models: a report is kept, and should be small."""
    for folder in list(jobs.glob("**/checkpoint")):
        shutil.rmtree(folder, ignore_errors=True)


def cut(number: int, _: FrameType | None) -> NoReturn:
    """Let the check end in good order; further signals would only disturb that."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise CutError(number)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; exits with code 2 when they are wrong."""
    parser = argparse.ArgumentParser(description="Check a machine with a GPU.")
    parser.add_argument("--wheels", default="", help="the directory with all packages")
    parser.add_argument(
        "--out", default="", help="where the report and the logs go; what is there is replaced"
    )
    parser.add_argument("--no-setup", action="store_true", help="use the environment in .venv as it is")
    parser.add_argument("--only", nargs="+", metavar="PART", help="run these parts")
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda", help="cpu: rehearse without a GPU"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for the whole check")
    parser.add_argument("--stretch", type=float, default=1.0, help="times all limits, on a slow machine")
    options = parser.parse_args(words)
    if not options.out or not (options.wheels or options.no_setup):
        parser.error("a directory is missing: make gpu-check WHEELS=DIR OUT=DIR")
    if options.wheels and not Path(options.wheels).is_dir():
        parser.error(f"there is no directory {options.wheels}: put the wheels of all packages into it")
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Run the check that the options ask for."""
    options = arguments(words)
    out = Path(options.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out / "jobs", ignore_errors=True)
    chosen = parts(Path(options.wheels).absolute(), out, options.device)
    if unknown := set(options.only or ()) - {part.name for part in chosen}:
        print(f"gpu_check: no part {', '.join(unknown)}: {' '.join(p.name for p in chosen)}", file=sys.stderr)
        return 2
    chosen = tuple(p for p in chosen if not options.only or p.name in options.only)
    chosen = tuple(p for p in chosen if not (options.no_setup and p.name == SET_UP))
    chosen = tuple(replace(p, limit=p.limit * options.stretch) for p in chosen)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, cut)
    report = Report(out, {}, chosen, {}, time.time())
    rehearsal = options.device == "cpu"
    try:
        report.machine = describe_machine()
    except CutError as error:
        report.note_cut(str(error))
        return 128 + error.number
    code = check(report, rehearsal or "gpu" in report.machine, options.limit * options.stretch, rehearsal)
    print(f"{report.result}: {out / 'report.txt'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
