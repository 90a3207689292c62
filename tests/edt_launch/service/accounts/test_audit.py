import pytest

from edt_launch.service.accounts import audit
from edt_launch.service.accounts.records import AuditRecord
from edt_launch.service.db.store import Store


def test_the_latest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_ROWS", 10)
    monkeypatch.setattr(audit, "EVERY", 5)
    for number in range(1, 31):
        store.audit.add(AuditRecord(float(number), "ann" if number % 2 else "bob", "POST", f"/{number}"))
    assert [change.number for change in store.audit.newest(100)] == list(range(30, 20, -1))
    assert [change.path for change in store.audit.newest(2, before=28, user="ann")] == ["/27", "/25"]
