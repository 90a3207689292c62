import re
import uuid

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.running.layout import executor_id

UNIQUE = uuid.UUID(int=2**100 + 12345)
NOW = 1582083900.25


def test_ids_look_as_clients_know_them() -> None:
    ids = identity.classic(1, "Admin", NOW, UNIQUE)
    assert re.fullmatch(r"Admin-1582083900250000-\d{9}", ids.id)
    assert ids.driver == f"driver-20200219034500-0001-{UNIQUE}"
    assert ids.app == f"app-20200219034500-0001-{UNIQUE}"
    ids = identity.modern(398, NOW, UNIQUE)
    assert (ids.id, ids.app) == ("wmla-398", "wmla-398")


def test_executors_are_numbered() -> None:
    assert identity.number_of(executor_id("wmla-1", 12)) == 12
    for nonsense in ("", "1", "0-x", f"x-{UNIQUE}", f"../1-{UNIQUE}", f"1-{UNIQUE}/.."):
        assert identity.number_of(nonsense) is None
