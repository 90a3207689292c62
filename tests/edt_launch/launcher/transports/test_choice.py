from edt_launch.cluster.host_file import HostList
from edt_launch.cluster.ray.connection import Options
from edt_launch.cluster.ray.source import Ray
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.choice import offered_by


def test_a_source_with_a_connection_to_its_hosts_offers_its_transport() -> None:
    ray = Ray(Options("auto", "p"), lambda _: object())  # type: ignore[arg-type, return-value]
    assert [transport.name for transport in offered_by(ray, RunOptions())] == [ray.transport]
    assert offered_by(HostList("a:1"), RunOptions()) == ()
    assert offered_by(None, RunOptions()) == ()
