from edt_launch.service import tokens
from edt_launch.service.database.records import UserRecord
from edt_launch.service.database.store import Store


def test_a_token_says_who_one_is_and_is_not_kept(store: Store) -> None:
    store.accounts.add_user(UserRecord("ann"))
    token, record = tokens.issue(store.accounts, "ann", "laptop", 5.0, expires=10.0)
    assert token.startswith(tokens.PREFIX)
    assert len(token) > 40
    assert token not in repr(store.accounts.tokens())
    assert store.accounts.tokens() == [record]
    assert tokens.bearer(store.accounts, token, 9.0) == UserRecord("ann")
    assert tokens.bearer(store.accounts, token, 11.0) is None
    assert tokens.bearer(store.accounts, token + "x", 9.0) is None
    assert tokens.bearer(store.accounts, "\udcff\0", 9.0) is None


def test_tokens_differ() -> None:
    assert len({tokens.new_token() for _ in range(100)}) == 100
