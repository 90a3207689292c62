from math import inf

from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.db.store import Store


def test_settings_of_a_share_leave_its_usage_alone(store: Store) -> None:
    store.shares.add_missing(ShareRecord("ann", guarantee=2.0))
    usage = {"service": 10.0, "entitlement": 20.0, "usage_at": 30.0, "used": 40.0}
    store.shares.remember({"ann": usage, "new": usage, "": usage})
    store.shares.put(ShareRecord("ann", weight=3.0, limit=8.0, budget=50.0))
    nodes = {node.name: node for node in store.shares.all()}
    assert nodes["ann"] == ShareRecord("ann", weight=3.0, limit=8.0, budget=50.0, **usage)
    assert nodes["new"].parent == ""
    assert (nodes["new"].limit, nodes["new"].budget) == (inf, inf)
    assert nodes[""].parent is None


def test_who_hung_below_a_removed_node_hangs_below_its_parent(store: Store) -> None:
    for node in (ShareRecord("lab"), ShareRecord("team", "lab"), ShareRecord("ann", "team")):
        store.shares.put(node)
    store.shares.remove("team")
    assert {node.name: node.parent for node in store.shares.all()} == {"": None, "ann": "lab", "lab": ""}
