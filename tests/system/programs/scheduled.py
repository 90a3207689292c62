"""The three trainings of models.py, again and again, while the number of workers changes at fixed steps.

scheduled.py OUT [--changes JSON]

JSON lists one run of the trainings after another; each is a list of [AT, SIZE]: after AT steps of the run the
world is one of SIZE workers. One step before, all wait until that has been announced, having asked for it
with a file OUT/change.<number of the change>. Without it there is one run, in the world as it is. Each worker
appends to OUT/steps.<pid>.jsonl one line a step.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from models import as_state, digests, in_turn, make, steps_done

import edt_hvd
from edt_hvd.world import world


def wait_for_change(request: Path) -> None:
    if edt_hvd.is_coordinator():
        request.touch()
    while not world.current().stop_wanted:
        time.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--changes", type=json.loads, default=[[]])
    options = parser.parse_args()

    edt_hvd.init(deterministic=True)
    trainings = make()
    beginning = as_state(trainings)
    beginning.save()
    state = as_state(trainings, run=0)
    requests = [(run, at) for run, changes in enumerate(options.changes) for at, _ in changes]
    journal = (options.out / f"steps.{os.getpid()}.jsonl").open("a", buffering=1)

    def wait_if_due() -> None:
        upcoming = (state.run, steps_done(trainings) + 1)
        if upcoming in requests:
            wait_for_change(options.out / f"change.{requests.index(upcoming)}")

    @edt_hvd.elastic
    def train(state: Any) -> None:
        while state.run < len(options.changes):
            wait_if_due()
            for training in in_turn(trainings):
                row = {"run": state.run, "model": training.name, "step": training.loader.total_steps_done}
                row |= {"rank": edt_hvd.rank(), "size": edt_hvd.size(), "digests": digests(training)}
                journal.write(json.dumps(row) + "\n")
                state.commit()
                wait_if_due()
            state.run += 1
            beginning.restore()

    train(state)


if __name__ == "__main__":
    main()
