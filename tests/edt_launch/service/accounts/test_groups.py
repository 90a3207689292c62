from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord


def test_what_is_left_of_a_removed_user_belongs_to_nobody_else(store: Store) -> None:
    def submit(number: int, owner: str) -> None:
        job = JobRecord(f"j{number}", owner, ("x",), 1, 1, 1.0, idempotency_key="key", fingerprint="f")
        assert store.jobs.add(job)[1]

    long = "x" * 64
    for number, name in enumerate(("ann", "ann", "an_", long, long)):
        store.accounts.add_user(UserRecord(name))
        submit(number, name)
        assert store.accounts.remove_user(name)
    submit(5, "ann")  # while they were being removed
    assert store.accounts.add_user(UserRecord("ann"))
    owners = [store.jobs.get(f"j{number}").owner for number in range(6)]
    assert owners == ["ann~1", "ann~2", "an_~1", f"{long[:52]}~1", f"{long[:52]}~2", "ann~3"]
    assert store.jobs.submitted_as("ann", "key") is None
