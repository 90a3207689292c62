"""The transports that there are, and which of them leads to a host."""

import threading
from collections.abc import Callable, Iterable, Mapping

from edt_launch.cluster import sources
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostSource
from edt_launch.core.command_line import NoOptions
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.launcher.transports.child import Child
from edt_launch.launcher.transports.ray import Ray
from edt_launch.launcher.transports.srun import SlurmPilot, Srun
from edt_launch.launcher.transports.ssh import Ssh
from edt_launch.launcher.transports.transport import AGENT, Connection, Transport

TRANSPORTS: tuple[type[Transport], ...] = (Ray, Srun, SlurmPilot, Ssh)
"""Those of other hosts. A host that names none has the first one that detects itself and need not be named;
ssh always does.
"""


def option_groups() -> tuple[type, ...]:
    """The options of sources of hosts, of transports and for ports: dataclasses.

    They are options of `edt-launch`, and settings of the service for its jobs.
    """
    declared = (kind.options for kind in TRANSPORTS if kind.options is not NoOptions)
    return tuple(dict.fromkeys((*sources.groups(), *declared, PortOptions)))


def offered_by(source: HostSource | None, options: RunOptions) -> tuple[Transport, ...]:
    """The transports over the connection that a source has to its hosts."""
    found = (kind.offered_by(source, options) for kind in TRANSPORTS if source is not None)
    return tuple(transport for transport in found if transport is not None)


class Transports:
    """The transports of a job's hosts, each made when the first of its hosts is there.

    Args:
        options: of the job.
        environment: the job's.
        is_remote: whether a host is another machine, if it names no transport. This machine needs none.
        given: transports that have been made already, by their names.
    """

    def __init__(
        self,
        options: RunOptions,
        environment: Mapping[str, str],
        is_remote: Callable[[str], bool],
        given: Iterable[Transport] = (),
    ) -> None:
        self._options = options
        self._environment = environment
        self._is_remote = is_remote
        self._made = {Child.name: Child(), **{transport.name: transport for transport in given}}
        self._named: dict[str, str] = {}
        self._agents: dict[str, str] = {}
        """Paths of the `edt` of hosts that name one."""
        self._lock = threading.Lock()

    def problem(self, host: HostSlots) -> str | None:
        """What is wrong with the transport that a host names; None if it can be used."""
        try:
            transport = self._for(host.host, host.transport)
            problem = transport.problem(host.host)
            if host.agent and not transport.runs_commands:
                problem = f"agent={host.agent} has no meaning for transport {transport.name}: leave it out"
        except UsageError as error:
            problem = str(error)
        return f"host {host.host!r}: {problem}" if problem is not None else None

    def follow(self, hosts: Iterable[HostSlots]) -> None:
        """Have these hosts by the transports and agents that they name.

        Raises:
            UsageError: a name is none, or its transport cannot be used here.
        """
        for host in hosts:
            self._agents.pop(host.host, None)
            self._named.pop(host.host, None)
            if host.agent:
                self._agents[host.host] = host.agent
            if host.transport:
                self._get(host.transport)
                self._named[host.host] = host.transport

    def of(self, host: str) -> Transport:
        """The transport of a host."""
        return self._for(host, self._named.get(host, ""))

    def open(self, host: str, marks: Mapping[str, str]) -> Connection:
        """Have an agent on a host, see `Transport.open`."""
        path = self._agents.get(host)
        return self.of(host).open(host, marks, AGENT if path is None else (path, "agent"))

    def _for(self, host: str, name: str) -> Transport:
        name = name or self._knowing(host)
        if not name and not self._is_remote(host):
            return self._get(Child.name)
        return self._get(name or self._options.transport or "")

    def _knowing(self, host: str) -> str:
        """The name of a transport that knows the host, which need not name it; empty if none does.

        Raises:
            UsageError: the job's transport cannot be used here.
        """
        if self._options.transport:
            self._get(self._options.transport)
        knows = (name for name, made in [*self._made.items()] if made.knows(host))
        if name := next(knows, ""):
            self._named[host] = name
        return name

    def is_remote(self, host: str) -> bool:
        """Whether a host is another machine, or an agent's that was not started here."""
        name = self._named.get(host) or self._knowing(host)
        return self._get(name).is_remote if name else self._is_remote(host)

    def address(self, host: str) -> str | None:
        """The address of a host that a transport knows, else None."""
        known = (transport.address(host) for transport in [*self._made.values()])
        return next(filter(None, known), None)

    def close(self) -> None:
        """The job has ended."""
        for transport in self._made.values():
            transport.close()

    def _get(self, name: str) -> Transport:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._detect(name)
            return self._made[name]

    def _detect(self, name: str) -> Transport:
        kinds = [kind for kind in TRANSPORTS if name == kind.name or not (name or kind.by_name_only)]
        found = (kind.detect(self._options, self._environment) for kind in kinds)
        transport = next((transport for transport in found if transport is not None), None)
        if transport is None:
            names = ", ".join([*self._made, *(kind.name for kind in TRANSPORTS)])
            raise UsageError(f"transport {name!r:.40} cannot be used here: name one of {names}")
        return transport
