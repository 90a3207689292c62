"""What a worker writes down while it trains the models of models.py.

It appends to OUT/steps.<pid>.jsonl one line a step. The coordinator also prints, at the end of each training,
the number of the run, the model and the SHA-256 of everything in it.
"""

import json
import os
from pathlib import Path

from models import STEPS, Training, digests, fingerprint

import edt_hvd


class Journal:
    """The journal of this process in the folder OUT."""

    def __init__(self, out: Path) -> None:
        self._file = (out / f"steps.{os.getpid()}.jsonl").open("a", buffering=1)

    def write(self, run: int, training: Training) -> None:
        """Write down the state that a step has led to."""
        name, step, found = training.name, training.loader.total_steps_done, digests(training)
        row = {"run": run, "model": name, "step": step, "rank": edt_hvd.rank(), "size": edt_hvd.size()}
        self._file.write(json.dumps(row | {"digests": found}) + "\n")
        if step == STEPS and edt_hvd.is_coordinator():
            print(run, name, fingerprint(found), flush=True)
