import contextlib
import threading

from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.db.store import Store
from edt_launch.service.errors import UnauthorizedError


def test_a_token_says_who_one_is_and_is_not_kept(store: Store) -> None:
    store.accounts.add_user(UserRecord("ann"))
    token, record = tokens.issue(store.accounts, "ann", "laptop", 5.0, expires=10.0)
    assert token.startswith(tokens.PREFIX)
    assert len(token) > 40
    assert token not in repr(store.accounts.tokens())
    assert store.accounts.tokens() == [record]
    assert tokens.bearer(store.accounts, token, 9.0) == (UserRecord("ann"), record)
    assert tokens.bearer(store.accounts, token, 11.0) is None
    assert tokens.bearer(store.accounts, token + "x", 9.0) is None
    assert tokens.bearer(store.accounts, "\udcff\0", 9.0) is None


def test_whoever_makes_a_token_while_another_is_revoked_is_too_late(store: Store) -> None:
    store.accounts.add_user(UserRecord("ann"))
    _, root = tokens.issue(store.accounts, "ann", "root", 1.0)
    made = [tokens.issue(store.accounts, "ann", "made", 1.0, parent=root)]
    go = threading.Barrier(2)

    def make() -> None:
        go.wait()
        with contextlib.suppress(UnauthorizedError):
            while True:
                made.append(tokens.issue(store.accounts, "ann", "made", 2.0, parent=made[-1][1]))

    thread = threading.Thread(target=make)
    thread.start()
    go.wait()
    store.accounts.revoke(root.id, "ann", 3.0)
    thread.join()
    assert [tokens.bearer(store.accounts, token, 4.0) for token, _ in made] == [None] * len(made)
