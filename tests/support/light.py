"""Where processes find how to import less of torch, with which they start in half the time."""

from pathlib import Path

LIGHT = str(Path(__file__).parents[1] / "system" / "shims" / "light")
"""For PYTHONPATH."""
