"""How a command of the tests ended."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """A command's exit code, and what it wrote."""

    code: int
    out: str
    err: str


Edt = Callable[..., Ended]
"""Runs the command line with some words."""
