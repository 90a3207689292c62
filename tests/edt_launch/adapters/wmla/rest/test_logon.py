import pytest

from asking import PASSWORD, Asking
from edt_launch.adapters.wmla.rest.authenticator import AUTH, CONDUCTOR
from edt_launch.adapters.wmla.rest.logon import LASTS
from edt_launch.service.accounts import passwords

LOGON = "/auth/logon"


def test_an_access_token_opens_everything_until_it_is_over(asking: Asking) -> None:
    client = asking.client("")
    token = client.get(f"{AUTH}/logon", auth=("ann", PASSWORD)).json()["accessToken"]
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/", headers=headers).json()["user"] == "ann"
    asking.world.clock.now += LASTS
    assert asking.client(headers=headers).get("/conf").status_code == 401


def test_a_session_is_a_cookie_for_both_bases(asking: Asking) -> None:
    client = asking.client("")
    answer = client.get(f"{CONDUCTOR}{LOGON}", auth=("ann", PASSWORD))
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("Path=/platform/rest", "HttpOnly", "Max-Age=", "SameSite=strict"))
    assert client.get("/platform/rest/deeplearning/v1/conf").status_code == 200
    assert client.get("/api/v1/").status_code == 401
    assert client.get(f"{CONDUCTOR}/auth/logoff").status_code == 200
    assert client.get("/platform/rest/deeplearning/v1/conf").status_code == 401


def test_a_token_of_ones_own_is_no_session_whatever_its_name(asking: Asking) -> None:
    told = asking.world.ann.post("/tokens", json={"name": "session"}).json()
    client = asking.client(AUTH)
    client.auth = ("ann", told["token"])
    assert client.get("/logon").json() == {"accessToken": told["token"]}
    headers = {"X-Auth-Token": told["token"]}
    assert asking.client(AUTH, headers=headers).post("/logoff").status_code == 204
    asking.world.store.accounts.set_password("ann", passwords.hash_of("another one"), 0.0)
    assert asking.client(headers=headers).get("/conf").status_code == 200


def test_a_session_does_not_renew_itself(asking: Asking) -> None:
    headers = {"X-Auth-Token": asking.world.tokens["ann"]}
    assert asking.client(AUTH).get("/logon", headers=headers).status_code == 401


def test_what_a_session_makes_ends_with_it(asking: Asking) -> None:
    world = asking.world
    end = world.clock.now + LASTS
    session = asking.client(AUTH).get("/logon", auth=("ann", PASSWORD)).json()["accessToken"]
    made = [world.client(session).post("/tokens", json={}).json() for _ in range(2)]
    assert [one["expires"] for one in made] == [end, end]
    headers = {"X-Auth-Token": session}
    assert asking.client(AUTH, headers=headers).post("/logoff").status_code == 204
    assert world.client(made[0]["token"]).get("/").status_code == 401
    session = asking.client(AUTH).get("/logon", auth=("ann", PASSWORD)).json()["accessToken"]
    child = world.client(session).post("/tokens", json={}).json()["token"]
    assert world.ann.put("/users/ann/password", json={"password": "another one"}).status_code == 204
    assert world.client(child).get("/").status_code == 401
    assert world.ann.get("/").status_code == 200


def test_a_password_that_is_changed_while_somebody_logs_on_opens_no_session(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = asking.world.store.accounts
    forget = accounts.forget_sessions

    def changed_meanwhile(user: str, now: float) -> None:
        forget(user, now)
        accounts.set_password(user, passwords.hash_of("another one"), now)

    monkeypatch.setattr(accounts, "forget_sessions", changed_meanwhile)
    answer = asking.client(AUTH).get("/logon", auth=("ann", PASSWORD))
    assert (answer.status_code, answer.text) == (
        401,
        "Error 401: the password was changed; use another one.\n",
    )
    assert [one.name for one in accounts.tokens("ann")] == ["test"]
