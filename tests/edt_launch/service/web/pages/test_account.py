from browser import browser
from world import World


def test_it_lists_the_browsers_and_ends_the_others(world: World) -> None:
    client, other, bob = browser(world, "ann"), browser(world, "ann"), browser(world, "bob")
    page = client.get("/account")
    assert page.text.count("this one") == 1
    assert page.text.count("another one") == 1
    assert client.post("/account/end-others").status_code == 303
    assert "another one" not in client.get("/account").text
    assert other.get("/account").status_code == 303
    assert bob.get("/account").status_code == 200
