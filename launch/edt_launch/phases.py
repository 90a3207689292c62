"""How the time of a resize is spent: a pure fold over a job's events, for whoever logs and shows them.

=============  ==================================================  ==================================
phase          from                                                to
=============  ==================================================  ==================================
detect         the allocation file's change                        the driver knows the new slots
prepare        that                                                all newcomers stand at the door
drain          the workers are told to stop, or one has died       all of them have left the old world
rendezvous     that                                                the new world is formed
transfer       that                                                newcomers have the state
first_step     that                                                the first commit
=============  ==================================================  ==================================

Training goes on through `detect`, `prepare` and the rest of the step in `drain`; the others are the pause.
The launcher and its driver run on one machine, so their times are of one clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

PHASES = ("detect", "prepare", "drain", "rendezvous", "transfer", "first_step")


@dataclass(frozen=True)
class Phases:
    """How far the resize under way is, in unix seconds; None for what has not been.

    Attributes:
        changed: when the allocation changed last, if nothing has been done about it yet.
        detected: when the driver knew of that.
        wanted: both, for the resize under way.
        stopped: when that began.
        gathered: when everybody was there for it.
    """

    changed: float | None = None
    detected: float | None = None
    wanted: tuple[float | None, float | None] = (None, None)
    stopped: float | None = None
    gathered: float | None = None

    def observe(self, event: Mapping[str, Any]) -> "tuple[Phases, Mapping[str, Any]]":
        """How far it is after one more event; and the event, `resumed` with all phases that are known."""
        match event:
            case {"event": "allocation_accepted", "changed": float(changed), "first": False}:
                return replace(self, changed=changed, detected=None), event
            case {"event": "desired", "time": float(time)} if self.changed is not None:
                return replace(self, detected=time), event
            case {"event": "stopping", "time": float(time)}:
                return Phases(wanted=(self.changed, self.detected), stopped=time), event
            case {"event": "failed", "time": float(time)} if self.stopped is None:
                return replace(self, wanted=(None, None), stopped=time), event
            case {"event": "world", "time": float(time)}:
                return replace(self, gathered=time), event
            case {"event": "resumed", "phases": dict(measured)}:
                return Phases(self.changed, self.detected), {**event, "phases": self._all(measured)}
        return self, event

    def _all(self, measured: Mapping[str, float]) -> dict[str, float]:
        """Seconds of every phase that is known, in their order, given what the workers have measured."""
        known = {
            "detect": _between(*self.wanted),
            "prepare": _between(self.wanted[1], self.stopped),
            "drain": _between(self.stopped, self.gathered),
        }
        found = {**measured, **{name: seconds for name, seconds in known.items() if seconds is not None}}
        return {name: found[name] for name in (*PHASES, *found) if name in found}


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)
