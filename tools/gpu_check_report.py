"""The report of a GPU check: what became of its parts, as JSON and as a page of text."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gpu_check_parts import ROOT, Part

TAIL, PASSED_TAIL = 60, 15
"""Last lines of a part's output in the report; on its page for a part that has passed."""


Status = Literal[
    "passed", "rehearsed", "failed", "timed out", "cut", "skipped", "not run", "running", "pending"
]
FAILURES: tuple[Status, ...] = ("failed", "timed out")


@dataclass(frozen=True)
class Outcome:
    """What became of a part; `reason` says why it did not pass, `figures` is the JSON that it ended with."""

    status: Status
    seconds: float = 0.0
    reason: str = ""
    figures: Any = None
    tail: tuple[str, ...] = ()


PENDING = Outcome("pending")


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

    def note_cut(self, reason: str) -> None:
        """Write down what was under way when the check was told to end, and what had not begun."""
        self.cut = reason
        for part in self.parts:
            status = self.of(part).status
            if status == "running":
                log = self.folder / f"{part.name}.log"
                outcome = read(log) if log.exists() else PENDING
                self.outcomes[part.name] = replace(outcome, status="cut", reason=reason)
            elif status == "pending":
                self.outcomes[part.name] = Outcome("not run", reason=reason)
        self.write()

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
