from browser import browser, made
from world import World


def test_it_lists_the_browsers_and_ends_the_others(world: World) -> None:
    client, other, bob = browser(world, "ann"), browser(world, "ann"), browser(world, "bob")
    page = client.get("/account")
    assert page.text.count("this one") == 1
    assert page.text.count("another one") == 1
    assert "all your other browsers" in client.get("/account/end-others").text
    assert client.post("/account/end-others").status_code == 303
    assert "another one" not in client.get("/account").text
    assert other.get("/account").status_code == 303
    assert bob.get("/account").status_code == 200


def test_a_token_is_shown_once_and_outlives_the_session(world: World) -> None:
    client = browser(world, "ann")
    token = made(client, "/account/tokens", name="<b>laptop", days="")
    assert "&lt;b&gt;laptop" in client.get("/account").text
    client.post("/logoff")
    assert world.client(token).get("/").json()["user"] == "ann"
    world.clock.now += 30 * 86400
    assert world.client(token).get("/").status_code == 200


def test_a_token_may_be_for_reading_only_and_then_opens_no_page(world: World) -> None:
    client = browser(world, "ann")
    token = made(client, "/account/tokens", name="screen", scope="read")
    assert "Read only" in client.get("/account").text
    assert world.client(token).get("/jobs").status_code == 200
    assert world.client(token).post("/jobs/j1/stop").status_code == 403
    refused = browser(world).post("/logon", data={"secret": token})
    assert refused.status_code == 403
    assert "The token screen is for reading only" in refused.text
    password = {"secret": token, "password": "another password"}
    assert "is for reading only" in client.post("/account/password", data=password).text
    assert client.post("/account/tokens", data={"scope": "write"}).status_code == 422


def test_a_token_is_revoked_and_nobody_elses(world: World) -> None:
    client = browser(world, "ann")
    token = made(client, "/account/tokens", name="old")
    (found,) = [one for one in world.store.accounts.tokens("ann") if one.name == "old"]
    path = f"/account/tokens/{found.id}/revoke"
    assert browser(world, "bob").get(path).status_code == 404
    assert browser(world, "bob").post(path).status_code == 404
    assert f'action="{path}"' in client.get(path).text
    assert world.client(token).get("/").status_code == 200
    assert client.post(path).status_code == 303
    assert world.client(token).get("/").status_code == 401
    assert client.post(path).status_code == 404
