import pytest

from asking import PASSWORD, Asking
from edt_launch.adapters.wmla.rest import authenticator
from edt_launch.service import passwords
from edt_launch.service.passwords import REMEMBERED, Verifier
from world import World


class Counting(Verifier):
    """Counts how often something was verified the slow way."""

    count = 0

    def verify(self, name: str, password: str, stored: str | None, now: float) -> bool:
        type(self).count += 1
        return super().verify(name, password, stored, now)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, world: World) -> Asking:
    monkeypatch.setattr(authenticator, "Verifier", Counting)
    Counting.count = 0
    return Asking(World(world.settings.home, world.store))


def status(asking: Asking, name: str, password: str) -> int:
    with asking.client() as client:
        return client.get("/conf", auth=(name, password)).status_code


def test_a_password_is_verified_once_in_a_while(counting: Asking) -> None:
    assert [status(counting, "ann", PASSWORD) for _ in range(3)] == [200] * 3
    assert Counting.count == 1
    assert status(counting, "bob", PASSWORD) == 200
    assert Counting.count == 2


def test_a_changed_password_counts_at_once(counting: Asking) -> None:
    assert status(counting, "ann", PASSWORD) == 200
    accounts = counting.world.store.accounts
    accounts.set_password("ann", passwords.hash_of("another one"), 0.0)
    assert status(counting, "ann", PASSWORD) == 401
    assert status(counting, "ann", "another one") == 200
    assert counting.world.store.accounts.remove_user("ann")
    assert status(counting, "ann", "another one") == 401


@pytest.mark.parametrize(
    "name, password",
    [("ann", "wrong"), ("nobody", PASSWORD), ("an\0n", PASSWORD), ("", ""), ("x" * 999, "y")],
)
def test_guessing_takes_as_long_whether_there_is_such_a_user_or_not(
    counting: Asking, name: str, password: str
) -> None:
    assert status(counting, name, password) == 401
    assert Counting.count == 1


def test_a_token_is_as_good_as_a_password(counting: Asking) -> None:
    token = counting.world.tokens["ann"]
    assert status(counting, "ann", token) == 200
    assert status(counting, "bob", token) == 401
    accounts = counting.world.store.accounts
    for record in accounts.tokens("ann"):
        accounts.revoke(record.id, "ann", 0.0)
    assert status(counting, "ann", token) == 401
    assert Counting.count == 0


def test_every_header_that_clients_send_is_understood(asking: Asking) -> None:
    token = asking.world.tokens["ann"]
    for headers in ({"X-Auth-Token": token}, {"Authorization": f"Bearer {token}"}):
        assert asking.client().get("/conf", headers=headers).status_code == 200
    answer = asking.client().get("/conf")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="EDT"')
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith("Error 401: ")
    assert answer.text.endswith(".\n")


def test_not_everybody_at_once_makes_it_compute(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator, "WAITING", 0)
    answer = asking.classic().get("/conf")
    assert (answer.status_code, answer.text) == (
        503,
        "Error 503: too many log on at once; try again in a moment.\n",
    )


def test_what_was_verified_is_forgotten_in_time() -> None:
    verifier, stored = Verifier(), passwords.hash_of("secret password")
    assert verifier.verify("ann", "secret password", stored, 0.0)
    assert verifier.remembers("ann", "secret password", stored, REMEMBERED - 1)
    assert not verifier.remembers("ann", "secret password", stored, REMEMBERED)
    assert not verifier.remembers("bob", "secret password", stored, 0.0)
    assert not verifier.remembers("ann", "secret password", None, 0.0)
    assert "secret password" not in f"{vars(verifier)}"
