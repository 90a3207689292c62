"""The metric of a trial: the last value of it that its script has reported."""

from pathlib import Path

from edt_launch.core.event_codec import read_line
from edt_launch.core.events import Progress
from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.service import tailing

NO_NUMBER = "no number of less than 1e300"


def reported(events: Path, name: str) -> Outcome:
    """Find a trial's metric in the last 64 MiB of its file of events, whatever is in that.

    Args:
        events: the file, `events.jsonl`.
        name: the metric's.
    """
    found: Progress | None = None
    try:
        for line in tailing.recent_lines(events):
            if b"progress" in line and isinstance(event := read_line(line), Progress):
                found = event if name in event.values else found
    except OSError as error:
        return Outcome(reason=f"{events.name} cannot be read: {error.strerror}")
    if found is not None and (last := found.number(name)) is not None:
        return Outcome(float(last))
    was = "was never reported" if found is None else f"was last {found.values[name]!r:.80}, {NO_NUMBER}"
    return Outcome(reason=f"the metric {name!r} {was}: call edt_hvd.report({name}=...) while training")
