from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from browser import browser
from edt_launch.service.accounts import passwords
from edt_launch.service.accounts.pages.logon import own_path
from world import World


def test_who_is_not_logged_on_is_brought_to_that_and_back(world: World) -> None:
    client = browser(world)
    answer = client.get("/account?tab=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/logon?next=/account%3Ftab%3D1")
    form = client.get(answer.headers["location"])
    assert 'name="next" value="/account?tab=1"' in form.text
    answer = client.post("/logon", data={"secret": world.tokens["ann"], "next": "/account?tab=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/account?tab=1")
    foreign = browser(world).post("/logon", data={"secret": world.tokens["ann"], "next": "//evil.test"})
    assert foreign.headers["location"] == "/"
    assert "ann" in client.get("/account").text


def test_a_password_logs_on(world: World) -> None:
    world.store.accounts.set_password("ann", passwords.hash_of("correct horse"), 0.0)
    client = browser(world)
    answer = client.post("/logon", data={"name": " ann ", "secret": "correct horse"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert "correct horse" not in cookie


def test_the_cookie_is_for_tls_alone_where_there_is_tls(world: World) -> None:
    client = browser(world)
    client.base_url = "https://edt.test"
    answer = client.post("/logon", data={"secret": world.tokens["ann"]})
    assert "Secure" in answer.headers["set-cookie"]


def test_a_token_of_another_name_is_refused(world: World) -> None:
    client = browser(world)
    assert client.post("/logon", data={"name": "bob", "secret": world.tokens["ann"]}).status_code == 401
    assert client.post("/logon", data={"secret": world.tokens["ann"] + "x"}).status_code == 401
    assert not client.cookies


def test_a_link_logs_on_once_and_looking_at_it_does_not(world: World) -> None:
    made = world.ann.post("/logon-links")
    assert made.status_code == 201
    path = made.json()["path"]
    client = browser(world)
    for _ in range(2):
        assert 'name="once"' in client.get(path).text
    secret = path.partition("once=")[2]
    assert client.post("/logon", data={"once": secret}).status_code == 303
    assert "ann" in client.get("/account").text
    again = browser(world).post("/logon", data={"once": secret})
    assert again.status_code == 401
    assert "the link has been used" in again.text.lower()


def test_logging_off_ends_the_session_and_no_other(world: World) -> None:
    client, other = browser(world, "ann"), browser(world, "ann")
    cookies = dict(client.cookies)
    assert client.post("/logoff").status_code == 303
    client.cookies.update(cookies)
    assert client.get("/account").headers["location"].startswith("/logon")
    assert other.get("/account").status_code == 200


def test_a_cookie_from_before_never_becomes_a_session(world: World) -> None:
    client = browser(world)
    client.headers["Cookie"] = "edt_session=edt_planted"
    answer = client.post("/logon", data={"secret": world.tokens["ann"]})
    assert "edt_planted" not in answer.headers["set-cookie"]
    planted = browser(world)
    planted.headers["Cookie"] = "edt_session=edt_planted"
    assert planted.get("/account").status_code == 303


@given(st.text(max_size=20) | st.text("/\\:.@?#ab \t", max_size=10))
def test_own_paths_name_no_host(text: str) -> None:
    parts = urlsplit(own_path(text))
    assert (parts.scheme, parts.netloc) == ("", "")
    assert own_path(text)[:1] == "/"
    assert own_path(text)[1:2] not in ("/", "\\")
