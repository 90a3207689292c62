"""Which agents that dial back are taken: a pure decision about what they say of themselves."""

import logging
import re
from collections.abc import Sequence

from edt_launch.agent import protocol
from edt_launch.agent.network.invitation import Greeting
from edt_launch.cluster.allocation import DEVICE, HOST, MAX_SLOTS
from edt_launch.core.errors import MAX_SHOWN_CHARACTERS

log = logging.getLogger(__name__)

MAX_REFUSALS = 20
"""Distinct refusals that are logged."""


def refusal_of(greeting: Greeting, present: str | None) -> str:
    """Why an agent with the job's token is refused; empty if it is taken.

    `present` is the instance that connects the agent of this host at present, if there is one.
    """
    if greeting.version != protocol.VERSION:
        return (
            f"edt_launch on {greeting.host} has version {greeting.version} of the agent's messages, this one "
            f"{protocol.VERSION}: install the same on all hosts"
        )
    if not re.fullmatch(HOST, greeting.host):
        return "its host name is no name: use letters, digits, '_', '.' and '-'"
    devices = greeting.devices
    is_device = all(isinstance(name, str) and re.fullmatch(DEVICE, name) for name in devices)
    is_one_each = is_device and (not devices or len(set(devices)) == len(devices) == greeting.slots)
    if not 0 <= greeting.slots <= MAX_SLOTS or not is_one_each:
        named = ", ".join(map(str, devices))[:MAX_SHOWN_CHARACTERS]
        return (
            f"{greeting.host} says that it has {greeting.slots} slots and the devices '{named}': expected "
            f"0 to {MAX_SLOTS} slots, and a device of its own for each or none"
        )
    if present not in (None, greeting.instance):
        return f"{greeting.host} has an agent already: give each host a name of its own, and one agent"
    return ""


class Refusals:
    """The latest refusal of each host, by the name that it has given; a new one is logged."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        """Note a refusal, unless there are `MAX_REFUSALS` of others."""
        if name not in self._texts and len(self._texts) >= MAX_REFUSALS:
            return
        if self._texts.get(name) != text:
            self._texts[name] = text
            log.warning("%s", text)

    def forget(self, name: str) -> None:
        """The host has been taken since."""
        self._texts.pop(name, None)

    def of(self, name: str) -> str | None:
        """That of one host."""
        return self._texts.get(name)

    @property
    def all(self) -> Sequence[str]:
        """Those that are known."""
        return tuple(self._texts.values())
