"""Hosts that do not answer an agent."""

import selectors

import pytest

from edt_launch.agent.network import probing
from edt_launch.agent.network.probing import Prober
from edt_launch.agent.protocol import Probe, Probed
from started import deaf


def test_a_host_that_does_not_accept_a_connection_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "PROBE_TIMEOUT", 0.0)
    reports: list[Probed] = []
    with selectors.DefaultSelector() as selector, deaf() as address:
        prober = Prober(selector, reports.append)
        prober.begin(Probe(7, {"far": address}))
        assert reports == []
        prober.tick()
    assert reports == [Probed(7, ())]
