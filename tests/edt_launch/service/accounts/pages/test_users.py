import html

import pytest

from browser import browser, made, shown_again
from edt_launch.service.jobs.states import State
from world import World


def test_administrators_see_who_there_is(world: World) -> None:
    job = world.submit(world.ann, max=2)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    world.store.jobs.record({job: {"size": 2, "held": (("node1", ("0", "1")),)}})
    admin = browser(world, "admin")
    page = admin.get("/users").text
    assert "/users/bob/remove" in page
    assert "/users/admin/remove" not in page
    assert "<td>user</td><td>everybody</td><td>1</td><td>2</td><td>0</td><td>1</td>" in page
    assert 'href="/users"' in admin.get("/pool").text
    assert 'href="/users"' not in browser(world, "ann").get("/pool").text


@pytest.mark.parametrize(
    "method, path",
    [("get", "/users"), ("post", "/users"), ("get", "/users/bob/remove"), ("post", "/users/bob/remove")],
)
def test_others_do_not(world: World, method: str, path: str) -> None:
    assert getattr(browser(world, "ann"), method)(path).status_code == 403
    assert len(world.store.accounts.users()) == 3


def test_a_user_is_added_with_a_token_that_outlives_the_session(world: World) -> None:
    admin = browser(world, "admin")
    token = made(admin, "/users", name="eve", is_admin="1")
    admin.post("/logoff")
    told = world.client(token).get("/").json()
    assert (told["user"], told["is_admin"]) == ("eve", True)


@pytest.mark.parametrize("name", ["ann", "<b>"])
def test_mistakes_keep_the_form(world: World, name: str) -> None:
    page = browser(world, "admin").post("/users", data={"name": name, "is_admin": "1"})
    shown_again(page, 409 if name == "ann" else 422, f'name="name" value="{html.escape(name)}"', " checked>")
    assert "<b>" not in page.text
    assert len(world.store.accounts.users()) == 3
