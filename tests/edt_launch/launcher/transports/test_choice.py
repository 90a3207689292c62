from typing import ClassVar

from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.transports.ssh import Ssh
from edt_launch.launcher.transports.transport import AGENT, Transport


class Recorder(Ssh):
    """Keeps the agents that it was to start."""

    name: ClassVar[str] = "recorder"
    started: ClassVar[list[object]] = []

    def open(self, host, marks, agent=AGENT):
        self.started.append(agent)


def test_a_host_has_the_transport_and_the_agent_of_its_latest_line() -> None:
    recorder: Transport = Recorder()
    transports = Transports(RunOptions(), {}, lambda host: True, [recorder])
    for agent in ("/wrong/edt", ""):
        transports.follow([HostSlots("n1", 1, None, "recorder", agent)])
        transports.open("n1", {})
    assert Recorder.started == [("/wrong/edt", "agent"), AGENT]
    transports.follow([HostSlots("n1", 1)])
    assert type(transports.of("n1")) is Ssh
