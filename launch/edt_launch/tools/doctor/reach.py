"""``edt doctor HOSTS``: which hosts of a job reach each other.

Agents are started on all hosts as a job starts them, and each connects to the others.
"""

import os
import queue
import sys
import tempfile
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edt_launch.agent.network.probing import PROBE_TIMEOUT
from edt_launch.agent.protocol import Hello, Probed, Setup
from edt_launch.cluster import host_file
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import LOCAL
from edt_launch.cluster.network import HostChecker
from edt_launch.core.command_line import variables
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.core.system.reserved_variables import is_of_launcher
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.hosts.host_events import AgentOutput, HostEvent, Lost
from edt_launch.launcher.transports.choice import Transports
from edt_messages.runs import JobRun

START_TIMEOUT = 60.0
"""Seconds that an agent has to say hello; ssh alone may take ten."""

ANSWER_TIMEOUT = PROBE_TIMEOUT + 10.0
"""Seconds that agents have to say whom they reach."""


@dataclass(frozen=True)
class Reach:
    """What was found.

    Attributes:
        problems: why no agent runs on a host, by host.
        reached: for each host with an agent, the others that it reaches.
        where: the ports that have to be open, in words.
    """

    problems: Mapping[str, str]
    reached: Mapping[str, Collection[str]]
    where: str = "all TCP ports"

    @property
    def is_ok(self) -> bool:
        """Whether every host reaches every other one."""
        return not self.problems and not self.apart

    @property
    def apart(self) -> list[tuple[str, str]]:
        """Pairs of hosts of which the first does not reach the second."""
        return [
            (one, other)
            for one in self.reached
            for other in self.reached
            if one != other and other not in self.reached[one]
        ]

    @property
    def table(self) -> str:
        """The matrix, a row for each host that tries to reach the others, and what is to be done."""
        hosts = list(self.reached)
        cells = [["from \\ to", *hosts]]
        cells += [[one, *(self._cell(one, other) for other in hosts)] for one in hosts]
        widths = [max(len(row[column]) for row in cells) for column in range(len(hosts) + 1)]
        rows = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
        failed = [f"fail  {host}: {problem}" for host, problem in self.problems.items()]
        for one, other in self.apart:
            failed.append(
                f"fail  {one} does not reach {other} -> check route and firewall between them: {self.where}"
            )
        return "\n".join([*rows, *failed] if hosts else failed)

    def _cell(self, one: str, other: str) -> str:
        if one == other:
            return "-"
        return "yes" if other in self.reached[one] else "NO"

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: ``{"ok": bool, "problems": {host: text}, "reached": {host: [host, ...]}}``."""
        reached = {host: sorted(others) for host, others in self.reached.items()}
        return {"ok": self.is_ok, "problems": dict(self.problems), "reached": reached}


def named(text: str) -> tuple[HostSlots, ...]:
    """The hosts of a file of this name, or else of a list as `-H` has it.

    Raises:
        UsageError: it is neither.
    """
    if os.path.isfile(text):
        return host_file.HostFile(Path(text)).hosts()
    return host_file.HostList(text).hosts()


def examine(hosts: Sequence[HostSlots], options: RunOptions) -> Reach:
    """Start agents, and have them find out whom they reach.

    This machine is among the hosts, as the launcher runs on it.

    Raises:
        UsageError: an option, or the transport of a host, cannot be used.
    """
    checker = HostChecker()
    transports = Transports(options, os.environ, checker.is_remote)
    checker.given = transports.address
    ports = options.ports
    where = "all TCP ports" if ports is None else f"TCP ports {ports}"
    try:
        transports.follow(hosts)
        checked = ((host, transports.problem(host) or checker(host.host)) for host in hosts)
        problems = {host.host: problem for host, problem in checked if problem is not None}
        names = [host.host for host in hosts if host.host not in problems]
        if all(map(transports.is_remote, names)):
            names.insert(0, LOCAL)
        reached, lost = _ask(names, checker, transports, options)
    finally:
        transports.close()
    return Reach({**problems, **lost}, reached, where)


def _ask(
    names: Sequence[str], checker: HostChecker, transports: Transports, options: RunOptions
) -> tuple[dict[str, Collection[str]], dict[str, str]]:
    """Whom the hosts with an agent reach, and why the others have none."""
    heard: queue.SimpleQueue[HostEvent] = queue.SimpleQueue()
    own = {**JobRun(uuid.uuid4().hex, 1).variables, **variables(options.of(PortOptions))}
    environment = {name: value for name, value in os.environ.items() if not is_of_launcher(name)}
    setup = Setup((sys.executable,), {**environment, **own}, os.getcwd(), forks=False)
    problems: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="edt-doctor-") as folder:
        agents = Agents(setup, Path(folder), transports, heard.put)
        try:
            for name in names:
                agents.open(name)
            there = _those_that_answer(heard, set(names), problems)
            towards = checker.address_towards(there)
            here = {name: towards if agents.is_here(name) else checker.address(name) for name in names}
            addresses = {name: here[name] or "" for name in names if name in there}
            reached = _probed(agents, heard, addresses, problems)
        finally:
            agents.close()
            agents.join()
    return reached, problems


def _probed(
    agents: Agents,
    heard: "queue.SimpleQueue[HostEvent]",
    addresses: dict[str, str],
    problems: dict[str, str],
) -> dict[str, Collection[str]]:
    """Whom each host reaches; one that cannot take part is left out, and put into `problems`."""
    reached: dict[str, Collection[str]] = {}
    agents.probe(1, addresses)
    deadline = time.monotonic() + ANSWER_TIMEOUT
    while len(reached) < len(addresses) and (event := _next(heard, deadline)) is not None:
        match event.happening:
            case Probed(_, others):
                reached[event.host] = others
            case AgentOutput(text) if event.host in addresses and text.startswith("edt agent: "):
                problems[event.host] = text.removeprefix("edt agent: ")
                del addresses[event.host]
                agents.probe(1, addresses)
    return {host: reached.get(host, ()) for host in addresses}


def _those_that_answer(
    heard: "queue.SimpleQueue[HostEvent]", awaited: set[str], problems: dict[str, str]
) -> set[str]:
    """The hosts whose agents say hello; why the others do not is put into `problems`."""
    there: set[str] = set()
    deadline = time.monotonic() + START_TIMEOUT
    while len(there) + len(problems) < len(awaited) and (event := _next(heard, deadline)) is not None:
        match event.happening:
            case Hello():
                there.add(event.host)
            case Lost() as lost:
                problems[event.host] = "; ".join(lost.explanation) or "its agent does not start"
    for host in awaited - there - problems.keys():
        problems[host] = f"its agent has said nothing for {START_TIMEOUT:g} s"
    return there


def _next(heard: "queue.SimpleQueue[HostEvent]", deadline: float) -> HostEvent | None:
    try:
        return heard.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        return None
