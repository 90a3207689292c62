"""Verdicts and messages in words, 80 columns wide, and as plain data. No I/O."""

import textwrap
from typing import Any

from edt_launch.tools.verify.causes import Verdict
from edt_launch.tools.verify.records import LENGTH, Difference

WIDTH = 80

NOUNS = {
    "parameters": ("parameter", "parameters"),
    "buffers": ("buffer", "buffers"),
    "optimizer": ("optimizer state", "optimizer states"),
    "loss": ("loss", "losses"),
    "values": ("value of the state", "values of the state"),
}
"""What one and several of a kind are called."""


def describe(verdict: Verdict) -> str:
    """The verdict in words."""
    difference, explanation = verdict.difference, verdict.explanation
    if difference is None or explanation is None:
        return (
            f"The bits agree: {verdict.compared} tensors and values after each of {verdict.steps} steps, "
            f"in {len(verdict.runs)} runs."
        )
    items = {
        "first": _first(difference),
        "between": _between(difference),
        "also": ", ".join(f"{count} {NOUNS[kind][count > 1]}" for kind, count in difference.others.items()),
        "likely cause": explanation.cause,
        "because": explanation.why,
        "what to do": explanation.advice,
    }
    return "\n".join(["The bits differ.", *(_item(label, text) for label, text in items.items() if text)])


def as_data(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON takes it."""
    data: dict[str, Any] = {
        "agree": verdict.agree,
        "runs": list(verdict.runs),
        "steps": verdict.steps,
        "compared": verdict.compared,
    }
    difference, explanation = verdict.difference, verdict.explanation
    if difference is None or explanation is None:
        return data
    runs = {"reference": difference.reference.name, "run": difference.run.name}
    where = {name: getattr(difference, name) for name in ("step", "rank", "size", "kind", "name", "others")}
    cause = {"cause": str(explanation.cause), "why": explanation.why, "advice": explanation.advice}
    return data | {"difference": runs | where} | cause


def wrapped(message: str) -> str:
    """A message about a run, wrapped; but words of the script and paths are to be copied as they are."""
    wrapper = textwrap.TextWrapper(
        WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    lines = message.splitlines()
    return "\n".join(
        line if line.startswith(("  |", "log: ", "logs: ")) else wrapper.fill(line) for line in lines
    )


def _item(label: str, text: str) -> str:
    first, rest = f"  {label:<14}", " " * 16
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _first(difference: Difference) -> str:
    if difference.kind == LENGTH:
        return f"number of steps, {difference.name}"
    when = f"after step {difference.step}" if difference.step else "at the beginning"
    return f"{NOUNS[difference.kind][0]} {difference.name}, {when}"


def _between(difference: Difference) -> str:
    if difference.is_of_workers:
        return f"rank {difference.rank} and rank 0 of {difference.run.name}"
    worker = f", rank {difference.rank} of {difference.size}" if difference.rank else ""
    return f"{difference.reference.name} and {difference.run.name}{worker}"
