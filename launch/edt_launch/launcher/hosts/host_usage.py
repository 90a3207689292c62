"""What the workers of all hosts use together, from what each agent has measured. Pure."""

from dataclasses import dataclass, field

from edt_launch.agent.protocol import Usage
from edt_launch.core.history import events

MAX_AGE = 30.0
"""Seconds after which a measurement counts no more: the host has no worker any longer."""


@dataclass
class HostUsage:
    """The last measurement of each host."""

    _hosts: dict[str, tuple[float, Usage]] = field(default_factory=dict)
    _leader: str = ""
    """The host whose measurements are told, with the last ones of all others."""

    def take(self, now: float, host: str, usage: Usage) -> events.Usage | None:
        """Take in a measurement; the event that it leads to, one for each measurement of one of the hosts."""
        self._hosts[host] = now, usage
        self._hosts = {name: (at, one) for name, (at, one) in self._hosts.items() if now - at <= MAX_AGE}
        if self._leader not in self._hosts:
            self._leader = host
        if host != self._leader:
            return None
        found = [one for _, one in self._hosts.values()]
        gpus = [one.gpus for one in found if one.gpus is not None]
        gpu_memory = [one.gpu_memory for one in found if one.gpu_memory is not None]
        gpu_power = [one.gpu_power for one in found if one.gpu_power is not None]
        return events.Usage(
            sum(one.processors for one in found),
            sum(one.memory for one in found),
            sum(gpus) / len(gpus) if gpus else None,
            sum(gpu_memory) if gpu_memory else None,
            sum(gpu_power) if gpu_power else None,
        )
