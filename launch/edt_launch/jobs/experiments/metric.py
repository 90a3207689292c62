"""The metric of a trial: the last value of it that its script has reported."""

from pathlib import Path

from edt_launch.core.event_codec import read_line
from edt_launch.core.events import Progress
from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.service import tailing
from edt_launch.service.series import number


def reported(events: Path, name: str) -> Outcome:
    """Find a trial's metric in the last 64 MiB of its file of events, whatever is in that.

    Args:
        events: the file, `events.jsonl`.
        name: the metric's.
    """
    found: list[object] = []
    try:
        for line in tailing.recent_lines(events):
            if b"progress" in line and isinstance(event := read_line(line), Progress):
                found = [event.values[name]] if name in event.values else found
    except OSError as error:
        return Outcome(reason=f"{events.name} cannot be read: {error.strerror}")
    if found and (last := number(found[0])) is not None:
        return Outcome(last)
    was = f"was last {found[0]!r:.80}, no finite number" if found else "was never reported"
    return Outcome(reason=f"the metric {name!r} {was}: call edt_hvd.report({name}=...) while training")
