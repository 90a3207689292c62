"""How the time of a resize is spent: a pure fold over a job's events, for whoever logs and shows them.

=============  ==================================================  ==================================
phase          from                                                to
=============  ==================================================  ==================================
detect         the allocation file's change                        the driver knows the new slots
prepare        that                                                all newcomers wait at the rendezvous
drain          the workers are told to stop, or one has died       all of them have left the old world
rendezvous     that                                                the new world is formed
transfer       that                                                newcomers have the state
first_step     that                                                the first commit
=============  ==================================================  ==================================

Training goes on through `detect`, `prepare` and the rest of the step in `drain`; the others are the pause.
The launcher and its driver run on one machine, so their times are of one clock.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from edt_launch.core import events

PHASES = ("detect", "prepare", "drain", "rendezvous", "transfer", "first_step")


@dataclass(frozen=True)
class Phases:
    """How far the resize under way is, in unix seconds; None for what has not been.

    Attributes:
        hosts: of the newest allocation, as its event has them.
        before: those before the change that nothing has been done about yet.
        changed: when the allocation changed last, if nothing has been done about it yet.
        detected: when the driver knew of that.
        members: the workers in the world, as its event has them.
        noticed: whether one of them has asked to leave, which is a reason of its own to stop.
        wanted: `changed` and `detected` for the resize under way.
        stopped: when that began.
        gathered: when everybody was there for it.
    """

    hosts: tuple[events.AllocatedHost, ...] = ()
    before: tuple[events.AllocatedHost, ...] = ()
    changed: float | None = None
    detected: float | None = None
    members: Collection[int] = ()
    noticed: bool = False
    wanted: tuple[float | None, float | None] = (None, None)
    stopped: float | None = None
    gathered: float | None = None

    def observe(self, event: events.Event) -> "tuple[Phases, events.Event]":
        """How far it is after one more event; and the event, `resumed` with all phases that are known."""
        match event:
            case events.Resumed(phases=measured):
                found = replace(self, wanted=(None, None), stopped=None, gathered=None)
                return found, replace(event, phases=self._all(measured))
        return self._after(event), event

    def _after(self, event: events.Event) -> "Phases":
        match event:
            case events.AllocationAccepted(hosts=hosts, changed=changed):
                return self._accept(hosts, changed)
            case events.Desired() if self.changed is not None:
                return replace(self, detected=event.time)
            case events.Leaving(worker) if worker in self.members:
                return replace(self, noticed=True)
            case events.Stopping():
                return self._stop(event.time)
            case events.Failed(worker) if self.stopped is None and worker in self.members:
                return replace(self, wanted=(None, None), stopped=event.time)
            case events.World(ranks=ranks):
                return replace(self, gathered=event.time, members=tuple(ranks), noticed=False)
        return self

    def _accept(self, hosts: tuple[events.AllocatedHost, ...], changed: float | None) -> "Phases":
        before = self.hosts if self.changed is None else self.before
        if hosts == before:  # the change is taken back, nothing comes of it
            return replace(self, hosts=hosts, changed=None, detected=None)
        if changed is None:
            return replace(self, hosts=hosts)
        return replace(self, hosts=hosts, before=before, changed=changed, detected=None)

    def _stop(self, time: float) -> "Phases":
        if self.noticed:  # what has changed meanwhile may have to wait for newcomers
            return replace(self, noticed=False, wanted=(None, None), stopped=time, gathered=None)
        wanted = (self.changed, self.detected)
        return replace(self, changed=None, detected=None, wanted=wanted, stopped=time, gathered=None)

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
