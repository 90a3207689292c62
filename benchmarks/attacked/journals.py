"""What the workers of pooled.py and brief.py have written down: a file a process, `<job>.<pid>.jsonl`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any


def rows(files: Iterable[Path]) -> list[dict[str, Any]]:
    """What is in such files; half a line that a killed worker has left does not count."""
    texts = [file.read_text() for file in sorted(files)]
    lines = [line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()]
    return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Use:
    """One worker's time on a device, as the worker itself has written it down.

    The host is empty where its program writes down none.
    """

    device: str
    begin: float
    end: float
    job: str
    pid: str
    host: str = ""


def uses(*out: Path) -> list[Use]:
    """Those of all workers that have begun, by their files in these folders."""
    found = []
    for file in (file for folder in out for file in folder.glob("*.jsonl")):
        if journal := rows([file]):
            job, pid, _ = file.name.split(".")
            first, last = journal[0], journal[-1]
            host = first.get("host", "")
            found.append(Use(first["device"], first["time"], last["time"], job, pid, host))
    return found


def overlaps(*out: Path) -> list[tuple[Use, Use]]:
    """Workers that had a device at the same time."""
    ordered = sorted(uses(*out), key=lambda use: (use.host, use.device, use.begin))
    pairs = [(a, b) for a, b in pairwise(ordered) if (a.host, a.device) == (b.host, b.device)]
    return [(a, b) for a, b in pairs if b.begin < a.end]


def steps(out: Path, job: str) -> list[int]:
    """The steps that the job's coordinators have done, in order."""
    done = [row for row in rows(out.glob(f"{job}.*.jsonl")) if row["kind"] == "step"]
    return sorted(row["step"] for row in done if row["rank"] == 0)
