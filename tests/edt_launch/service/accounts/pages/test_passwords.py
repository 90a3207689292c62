import pytest

from browser import browser
from edt_launch.service.accounts import tokens
from world import NOW, World

NEW = "correct horse"


def logs_on(world: World, name: str, secret: str) -> bool:
    return browser(world).post("/logon", data={"name": name, "secret": secret}).status_code == 303


def test_a_user_sets_their_own_password_and_is_logged_off_by_that(world: World) -> None:
    client = browser(world, "ann")
    assert "Your password now" in client.get("/account/password").text
    given = {"secret": world.tokens["ann"], "password": NEW}
    assert client.post("/account/password", data=given).headers["location"] == "/logon"
    assert client.get("/account").status_code == 303
    assert logs_on(world, "ann", NEW)
    again = browser(world, "ann")
    given = {"secret": NEW, "password": "another horse"}
    assert again.post("/account/password", data=given).status_code == 303
    assert not logs_on(world, "ann", NEW)
    assert logs_on(world, "ann", "another horse")


@pytest.mark.parametrize(
    "secret, password, told",
    [
        ("wrong", NEW, "the name or the password is unknown"),
        ("ann", "short", "8 are needed"),
        ("bob", NEW, "not yours"),
        ("ends", NEW, "the token ends"),
    ],
)
def test_whoever_does_not_prove_who_they_are_sets_none(
    world: World, secret: str, password: str, told: str
) -> None:
    ends, _ = tokens.issue(world.store.accounts, "ann", "short", NOW, NOW + 60)
    given = {"secret": {**world.tokens, "ends": ends}.get(secret, secret), "password": password}
    answer = browser(world, "ann").post("/account/password", data=given)
    assert answer.status_code == 422
    assert told in answer.text
    assert given["secret"] not in answer.text
    assert not logs_on(world, "ann", password)
