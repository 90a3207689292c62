"""Check a machine with a GPU: build for it, run what needs one, and leave a report, within eight minutes.

``make gpu-check WHEELS=DIR OUT=DIR`` runs this. Its parts run one after the other, the most important first,
each with a limit of its own. ``OUT/report.json`` and ``OUT/report.txt`` are replaced before and after each
part, so a check that is cut short leaves what it has found; ``OUT/<part>.log`` has a part's whole output.

Exit codes: 0 all parts passed, 1 a part failed, 2 usage, 3 none failed but not all were run, 128 + n ended by
signal n. Standard library only: it runs before anything is installed.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn

from horovod_wheel import machine_has_gpu

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
SET_UP = "set-up"

LIMIT = 470.0
"""Seconds for the whole check: with what ends the last part, it fits into a command limited to 480."""

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL for a part that has used up its time."""

CUT_GRACE = 1.0
"""The same when the whole check is told to end: whoever does so may not wait for long."""

LEAST = 5.0
"""Seconds without which no part is begun."""

TAIL, PASSED_TAIL = 60, 15
"""Last lines of a part's output in the report; on its page for a part that has passed."""

MARK = "EDT_GPU_CHECK"
"""Environment variable by which the processes of a part are found, in whatever session they are."""

Status = Literal[
    "passed", "rehearsed", "failed", "timed out", "cut", "skipped", "not run", "running", "pending"
]
FAILURES: tuple[Status, ...] = ("failed", "timed out")


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Attributes:
        name: short; its log is ``<name>.log``.
        why: what it shows.
        command: to be run in the repository's root; exit code 0 is success.
        limit: seconds after which it is ended.
        needs: names of earlier parts without whose success it is not run.
        needs_gpu: whether it shows anything only on a GPU.
        refused: a pattern that its output must not contain, whatever the exit code.
    """

    name: str
    why: str
    command: tuple[str, ...]
    limit: float
    needs: tuple[str, ...] = (SET_UP,)
    needs_gpu: bool = True
    refused: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a part; `reason` says why it did not pass, `figures` is the JSON that it ended with."""

    status: Status
    seconds: float = 0.0
    reason: str = ""
    figures: Any = None
    tail: tuple[str, ...] = ()


PENDING = Outcome("pending")


class CutError(Exception):
    """The check was told to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"ended by {signal.Signals(number).name}")


# What is run.

LOSS = ("--width", 1024, "--steps", 30, "--limit", 30)
OVERHEAD = ("--workers", 1, "--pairs", 10, "--width", 4096, "--micro", 512)
EXACT = ("step", "--rounds", 3, "--steps", 3, "--parameters", 4e6, "--micro", 256)
NEED_A_GPU = ("reduction/test_fixed_point_cuda.py", "state/test_snapshot.py", "data/test_loader.py")
"""Tests in ``tests/edt_hvd`` of which some are skipped without a GPU."""

SKIPPED = "needs CUDA|there is no GPU|Triton is not installed"


def parts(wheels: Path, out: Path, device: str) -> tuple[Part, ...]:
    """Return all parts, the most important first. Their limits add up to eight minutes.

    Args:
        wheels: The directory with all packages.
        out: Where jobs keep their files, in ``jobs``.
        device: ``cuda``; or ``cpu`` for a rehearsal, with smaller sizes.
    """
    rehearsal = device == "cpu"
    python, jobs = str(BIN / "python"), out / "jobs"

    def benchmark(name: str, *arguments: object, **on_cpu: object) -> tuple[str, ...]:
        options = {"device": device, **(on_cpu if rehearsal else {})}
        named = (
            word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))
        )
        return (python, f"benchmarks/{name}.py", *map(str, arguments), *named)

    def launched(name: str, workers: int, command: tuple[str, ...]) -> tuple[str, ...]:
        sizes = ("--min-np", str(workers), "--max-np", str(workers))
        slots = ("-H", f"localhost:{workers}", "--output-dir", str(jobs / name))
        return (str(BIN / "edt-launch"), *sizes, *slots, *command[1:])

    return (
        Part(
            SET_UP,
            "the environment around this interpreter's torch, without a network; Horovod with NCCL",
            ("make", "setup", "TORCH=present", f"WHEELS={wheels}", f"PYTHON={sys.executable}"),
            limit=185,
            needs=(),
            needs_gpu=False,
        ),
        Part(
            "doctor",
            "what this machine and the environment have",
            (str(BIN / "edt"), "doctor", "--json"),
            limit=20,
            needs_gpu=False,
            refused="built without NCCL|does not use this machine's GPUs",
        ),
        Part(
            "kernels",
            "Triton's kernels give the bits of the reference; copies go into pinned memory",
            (
                *(python, "-m", "pytest", "-q", "-n", "3", "-p", "no:cacheprovider"),
                *(f"tests/edt_hvd/{file}" for file in NEED_A_GPU),
            ),
            limit=40,
            refused=None if rehearsal else SKIPPED,
        ),
        Part(
            "bits",
            "1, 2 and 4 workers train the same bits, over NCCL and over Gloo",
            benchmark("gpu_jobs", "bits", jobs, "--limit", 25, width=64, limit=60),
            limit=70,
        ),
        Part(
            "resizes",
            "over NCCL a job grows from 1 worker to 2 and 4 and shrinks to 2, and trains the same bits",
            benchmark("gpu_jobs", "resizes", jobs, width=64),
            limit=45,
        ),
        Part(
            "loss",
            "over NCCL a job survives a kill -9 inside an all-reduce: how long it stands still; same bits",
            benchmark("gpu_jobs", "loss", jobs, *LOSS, kill_after=0.0),
            limit=45,
        ),
        Part(
            "commits",
            "what commits of 350 M parameters cost, beside a bare copy to the host",
            benchmark("commits", parameters=1e6, layers=4, samples=16, steps=5),
            limit=25,
        ),
        Part(
            "overhead",
            "step time of a worker over that of a static loop of Horovod's",
            launched(
                "overhead",
                1,
                benchmark("steady_state", *OVERHEAD, width=64, micro=16),
            ),
            limit=20,
        ),
        Part(
            "exact",
            "step time of exact reduction over ring's, two workers on one GPU",
            launched("exact", 2, benchmark("exact", *EXACT, parameters=1e5, micro=16)),
            limit=20,
        ),
        Part(
            "bandwidth",
            "bandwidth of Triton's kernels beside the device's memcpy",
            benchmark("exact", "kernel", "--pairs", 10, "--elements", 25e6, elements=1e5),
            limit=10,
        ),
    )


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


def read(log: Path) -> Outcome:
    """Return what a part's output says, as an outcome that has passed."""
    lines = log.read_text(errors="replace").splitlines()[1:]
    text = [line for line in lines if not line.startswith('{"')]
    return Outcome("passed", figures=figures(lines), tail=tuple(text[-TAIL:]))


def figures(lines: Sequence[str]) -> Any:
    """Return the JSON object that the output ends with; None if there is none."""
    for number in reversed([number for number, line in enumerate(lines) if line.startswith("{")]):
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads("\n".join(lines[number:]))
    return None


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


# The report.


@dataclass
class Report:
    """What is known so far, and where it is written.

    Attributes:
        folder: Gets ``report.json`` and ``report.txt``.
        machine: Facts about it, by name.
        parts: All of them.
        outcomes: By the parts' names; none for parts that have not begun.
        cut: How the check was told to end; empty if it was not.
    """

    folder: Path
    machine: dict[str, Any]
    parts: tuple[Part, ...]
    outcomes: dict[str, Outcome]
    begun: float
    cut: str = ""

    def write(self) -> None:
        """Replace both files."""
        replace_file(self.folder / "report.json", json.dumps(self.content(), indent=2) + "\n")
        replace_file(self.folder / "report.txt", self.page())

    def of(self, part: Part) -> Outcome:
        """Return what is known of a part."""
        return self.outcomes.get(part.name, PENDING)

    @property
    def result(self) -> str:
        """``passed`` only if all parts have."""
        statuses = {self.of(part).status for part in self.parts}
        if statuses & set(FAILURES):
            return "failed"
        if self.cut:
            return "cut"
        if statuses & {"running", "pending"}:
            return "running"
        return "passed" if statuses == {"passed"} else "incomplete"

    def content(self) -> dict[str, Any]:
        """Return all that is known, for JSON."""
        rows = [{**asdict(part), **asdict(self.of(part)), "log": f"{part.name}.log"} for part in self.parts]
        now = time.time()
        return {
            "version": 1,
            "result": self.result,
            "cut": self.cut or None,
            "begun": self.begun,
            "seconds": now - self.begun,
            "machine": self.machine,
            "parts": rows,
        }

    def page(self) -> str:
        """Return the report as text."""
        lines = [
            f"GPU check: {self.result}{f' ({self.cut})' if self.cut else ''}, {time.ctime(self.begun)}",
            "",
        ]
        lines += [f"{name:10} {value}" for name, value in self.machine.items()]
        lines += ["", f"{'part':10} {'status':10} {'seconds':>8} {'limit':>6}  what it shows"]
        for part in self.parts:
            outcome = self.of(part)
            lines.append(
                f"{part.name:10} {outcome.status:10} {outcome.seconds:8.1f} {part.limit:6.0f}  {part.why}"
            )
            if outcome.reason:
                lines.append(f"{'':10} {outcome.reason}")
        for part in self.parts:
            outcome = self.of(part)
            shown = PASSED_TAIL if outcome.status in ("passed", "rehearsed") else TAIL
            if tail := outcome.tail[-shown:]:
                lines += ["", f"--- {part.name}: the end of {part.name}.log", *tail]
        return "\n".join(lines) + "\n"


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.replace(path)


def describe_machine() -> dict[str, Any]:
    """Return what the figures depend on; commands that are missing or slow are left out."""
    query = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {
        "gpu": answer(*query),
        "nvcc": nvcc_version(),
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
        "memory": f"{memory / 2**30:.0f} GiB",
        "commit": answer("git", "-C", str(ROOT), "rev-parse", "HEAD"),
    }
    return {name: value for name, value in found.items() if value is not None}


def nvcc_version() -> str | None:
    """Return the release of the toolkit's compiler."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    said = answer(str(home / "bin" / "nvcc"), "--version") or answer("nvcc", "--version") or ""
    found = re.search(r"release [^;]*", said)
    return found and found[0]


def answer(*command: str) -> str | None:
    """Return what a command prints, on one line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return "; ".join(done.stdout.strip().splitlines()) or None


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
        note_cut(report, str(error))
        return 128 + error.number
    return {"passed": 0, "failed": 1}.get(report.result, 3)


def discard_checkpoints(jobs: Path) -> None:
    """Remove what jobs have saved of their models: a report is kept, and should be small."""
    for folder in list(jobs.glob("**/checkpoint")):
        shutil.rmtree(folder, ignore_errors=True)


def note_cut(report: Report, reason: str) -> None:
    """Write down what was under way and what was not begun."""
    report.cut = reason
    for part in report.parts:
        status = report.of(part).status
        if status == "running":
            log = report.folder / f"{part.name}.log"
            outcome = read(log) if log.exists() else PENDING
            report.outcomes[part.name] = replace(outcome, status="cut", reason=reason)
        elif status == "pending":
            report.outcomes[part.name] = Outcome("not run", reason=reason)
    report.write()


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
        note_cut(report, str(error))
        return 128 + error.number
    code = check(report, rehearsal or machine_has_gpu(), options.limit * options.stretch, rehearsal)
    print(f"{report.result}: {out / 'report.txt'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
