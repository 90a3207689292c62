import pytest

from edt_launch.service.accounts import sessions, tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.accounts.sessions import IDLE, LASTS, LINK_LASTS
from edt_launch.service.db.store import Store
from edt_launch.service.errors import UnauthorizedError


@pytest.fixture
def ann(store: Store) -> Store:
    store.accounts.add_user(UserRecord("ann"))
    return store


def test_a_session_ends_when_it_is_not_used(ann: Store) -> None:
    token = sessions.begin(ann.accounts, "ann", 0.0)
    found = sessions.resume(ann.accounts, token, IDLE - 1)
    assert found[0].name == "ann"
    assert sessions.resume(ann.accounts, token, 2 * IDLE - 2) is not None
    assert sessions.resume(ann.accounts, token, 3 * IDLE) is None


def test_a_session_ends_after_a_week_however_much_it_is_used(ann: Store) -> None:
    token = sessions.begin(ann.accounts, "ann", 0.0)
    now = 0.0
    while now < LASTS:
        assert sessions.resume(ann.accounts, token, now) is not None
        now += IDLE - 1
    assert sessions.resume(ann.accounts, token, now) is None


def test_a_session_ends_with_the_token_that_it_was_begun_with(ann: Store) -> None:
    secret, parent = tokens.issue(ann.accounts, "ann", "laptop", 0.0)
    token = sessions.begin(ann.accounts, "ann", 1.0, parent=parent)
    assert sessions.resume(ann.accounts, secret, 2.0) is None  # that is no session
    ann.accounts.revoke(parent.id, "ann", 3.0)
    assert sessions.resume(ann.accounts, token, 4.0) is None


def test_a_session_ends_when_the_password_is_changed(ann: Store) -> None:
    ann.accounts.set_password("ann", "old", 0.0)
    token = sessions.begin(ann.accounts, "ann", 1.0, password_hash="old")
    ann.accounts.set_password("ann", "new", 2.0)
    assert sessions.resume(ann.accounts, token, 3.0) is None
    with pytest.raises(UnauthorizedError, match="password was changed"):
        sessions.begin(ann.accounts, "ann", 4.0, password_hash="old")


def test_a_link_logs_on_once_and_opens_nothing_else(ann: Store) -> None:
    _, parent = tokens.issue(ann.accounts, "ann", "laptop", 0.0)
    secret = sessions.link(ann.accounts, parent, 0.0)["path"].removeprefix("/logon?once=")
    assert tokens.bearer(ann.accounts, secret, 1.0) is None
    token = sessions.begin_with_link(ann.accounts, secret, 1.0)
    assert sessions.resume(ann.accounts, token, 2.0) is not None
    with pytest.raises(UnauthorizedError, match="used"):
        sessions.begin_with_link(ann.accounts, secret, 2.0)
    ann.accounts.revoke(parent.id, "ann", 3.0)
    assert sessions.resume(ann.accounts, token, 4.0) is None


def test_a_link_ends(ann: Store) -> None:
    _, parent = tokens.issue(ann.accounts, "ann", "laptop", 0.0)
    late = sessions.link(ann.accounts, parent, 0.0)["path"].removeprefix("/logon?once=")
    revoked = sessions.link(ann.accounts, parent, LINK_LASTS)["path"].removeprefix("/logon?once=")
    ann.accounts.revoke(parent.id, "ann", LINK_LASTS + 1)
    for secret in (late, revoked, "", "edt_nonsense"):
        with pytest.raises(UnauthorizedError, match="expired"):
            sessions.begin_with_link(ann.accounts, secret, LINK_LASTS + 2)
