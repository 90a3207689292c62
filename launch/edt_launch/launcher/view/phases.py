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
from itertools import pairwise

from edt_launch.core.history import events

PHASES = ("detect", "prepare", "drain", "rendezvous", "transfer", "first_step")


@dataclass(frozen=True)
class Phases:
    """How far the resize under way is, in unix seconds; None for what has not been."""

    hosts: tuple[events.AllocatedHost, ...] = ()
    before: tuple[events.AllocatedHost, ...] = ()
    """The hosts before the change that nothing has been done about yet."""
    changed: float | None = None
    """When the allocation changed last, if nothing has been done about it yet."""
    detected: float | None = None
    """When the driver knew of that."""
    members: Collection[int] = ()
    noticed: bool = False
    """Whether a member has asked to leave, which is a reason of its own to stop."""
    wanted: tuple[float | None, float | None] = (None, None)
    """`changed` and `detected` for the resize under way."""
    stopped: float | None = None
    gathered: float | None = None
    """When everybody was there for it."""

    def observe(self, event: events.Event) -> "tuple[Phases, events.Event]":
        """How far it is after one more event; and the event, `resumed` with all phases that are known."""
        if not isinstance(event, events.Resumed):
            return self._after(event), event
        after = replace(self, wanted=(None, None), stopped=None, gathered=None)
        return after, replace(event, phases=self._all(event.phases))

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
        ours = pairwise((*self.wanted, self.stopped, self.gathered))
        seconds = dict(measured)
        for name, (start, end) in zip(PHASES, ours, strict=False):
            if start is not None and end is not None:
                seconds[name] = max(0.0, end - start)
        return {name: seconds[name] for name in (*PHASES, *seconds) if name in seconds}
