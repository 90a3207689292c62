from dataclasses import replace

import pytest

from edt_launch.agent import protocol
from edt_launch.agent.network.invitation import Greeting
from edt_launch.launcher.transports.admission import refusal_of


def test_one_agent_a_host() -> None:
    one = Greeting("t", "far", protocol.VERSION, "x")
    assert refusal_of(one, None) == refusal_of(one, "x") == ""
    assert refusal_of(one, "y").startswith("far has an agent already")


@pytest.mark.parametrize(
    "slots, devices", [(-1, []), (2**31, []), (2, ["0"]), (2, ["0", "0"]), (1, ["a b"]), (2, [1, 2])]
)
def test_a_host_that_lies_about_its_devices(slots: int, devices: list[object]) -> None:
    one = Greeting("t", "far", protocol.VERSION, "x", slots=2, devices=["0", "1"])
    assert refusal_of(one, None) == ""
    refused = refusal_of(replace(one, slots=slots, devices=devices), None)
    assert refused.startswith(f"far says that it has {slots} slots and the devices")
