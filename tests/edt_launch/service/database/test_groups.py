from edt_launch.service.database.account_records import TokenRecord, UserRecord
from edt_launch.service.database.records import AllocationRecord, JobRecord
from edt_launch.service.database.store import Store


def test_the_newest_allocations_come_last(store: Store) -> None:
    changes = [
        AllocationRecord(job, "ann", time, 0, 1, (("n", ("0",)),), "grows")
        for job, time in (("ja", 1.0), ("jb", 2.0), ("ja", 3.0))
    ]
    store.history.add(changes)
    store.history.add([])
    assert [(one.job, one.time) for one in store.history.newest()] == [("ja", 1.0), ("jb", 2.0), ("ja", 3.0)]
    assert [one.time for one in store.history.newest(limit=2)] == [2.0, 3.0]
    assert [one.time for one in store.history.newest(job="ja")] == [1.0, 3.0]
    assert [one.time for one in store.history.newest(since=2.0)] == [2.0, 3.0]
    assert store.history.newest()[0].devices == (("n", ("0",)),)


def test_a_token_opens_until_it_expires_or_is_revoked(store: Store) -> None:
    store.accounts.add_user(UserRecord("ann"))
    store.accounts.add_token(TokenRecord("1", "h1", "ann", "laptop", 0.0, expires=10.0))
    store.accounts.add_token(TokenRecord("2", "h2", "ann", "", 1.0))
    found = store.accounts.bearer("h1", 9.0)
    assert found is not None
    assert (found[0], found[1].id) == (UserRecord("ann"), "1")
    assert store.accounts.bearer("h1", 10.0) is None
    assert store.accounts.bearer("h3", 1.0) is None
    assert not store.accounts.revoke("2", "bob", 5.0)
    assert store.accounts.revoke("2", "ann", 5.0)
    assert not store.accounts.revoke("2", None, 6.0)
    assert store.accounts.bearer("h2", 6.0) is None
    assert [token.id for token in store.accounts.tokens("ann")] == ["1"]


def test_users_are_unique_and_go_with_their_tokens(store: Store) -> None:
    assert store.accounts.add_user(UserRecord("ann", created=1.0))
    assert not store.accounts.add_user(UserRecord("ann", is_admin=True))
    assert store.accounts.users() == [UserRecord("ann", created=1.0)]
    store.accounts.add_token(TokenRecord("1", "h1", "ann", "", 0.0))
    assert store.accounts.remove_user("ann")
    assert not store.accounts.remove_user("ann")
    assert store.accounts.tokens() == []
    assert store.accounts.user("ann") is None


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


def test_values_are_kept_by_key(store: Store) -> None:
    assert store.memory.get("x", 7) == 7
    store.memory.set("x", {"a": [1, None]})
    store.memory.set("x", [2])
    assert store.memory.get("x") == [2]
