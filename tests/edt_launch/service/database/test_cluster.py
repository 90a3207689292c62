from dataclasses import replace

from edt_launch.service.database.records import HostRecord
from edt_launch.service.database.store import Store


def test_hosts_go_up_down_and_drain(store: Store) -> None:
    store.hosts.put([HostRecord("b", ("0", "1")), HostRecord("a", ())])
    assert [host.name for host in store.hosts.all()] == ["a", "b"]
    assert store.hosts.drain("b", True, "mended", 5.0)
    assert store.hosts.all()[1].state == "draining"
    assert store.hosts.all()[1].why == "mended"
    store.hosts.put([replace(store.hosts.all()[1], is_up=False, changed=6.0)])
    assert store.hosts.all()[1].state == "down"
    assert store.hosts.all()[1].is_draining
    assert not store.hosts.drain("c", True, "", 5.0)
