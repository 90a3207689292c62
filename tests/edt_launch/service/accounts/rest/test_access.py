"""Who may do what: nobody anything without a token, nobody anything to others' jobs, administrators all."""

import itertools

from edt_launch.service.jobs.answers import PRIVATE
from edt_launch.service.jobs.states import State
from world import World, post_job, tar

OWNERS_ONLY = [
    ("PATCH", "", {"max": 3}),
    *(("POST", path, None) for path in ("/stop", "/pause", "/resume")),
    *(("GET", path, None) for path in ("/logs", "/logs/search?text=x", "/files", "/events", "/metrics")),
    *(("GET", path, None) for path in ("/results", "/checkpoints", "/checkpoints/step-00000001")),
    ("DELETE", "", None),
]

ADMINS_ONLY = [
    ("POST", "/hosts/node1/drain", None),
    ("POST", "/hosts/node1/undrain", None),
    ("PUT", "/shares/ann", {"weight": 3}),
    ("GET", "/users", None),
    ("GET", "/audit", None),
    ("POST", "/users", {"name": "carl"}),
    ("DELETE", "/users/bob", None),
]


def test_nobody_touches_anothers_job(world: World) -> None:
    job = world.submit(world.ann)["id"]
    for state in (State.QUEUED, State.STOPPED):
        world.go(job, state)
        before = world.store.jobs.get(job)
        for method, path, content in OWNERS_ONLY:
            answer = world.bob.request(method, f"/jobs/{job}{path}", json=content)
            assert answer.status_code == 403, (method, path, answer.text)
            assert "ann" in answer.json()["detail"]
        assert world.store.jobs.get(job) == before


def test_a_token_for_reading_changes_nothing_and_makes_none_that_does(world: World) -> None:
    job = world.submit(world.ann)["id"]
    made = world.ann.post("/tokens", json={"name": "screen", "scope": "read"}).json()
    assert made["scope"] == "read"
    reader = world.client(made["token"])
    assert reader.get(f"/jobs/{job}").json()["command"] == world.ann.get(f"/jobs/{job}").json()["command"]
    for method, path in (("POST", f"/jobs/{job}/stop"), ("POST", "/tokens"), ("POST", "/logon-links")):
        answer = reader.request(method, path, json={})
        assert answer.status_code == 403
        assert "the token screen is for reading only" in answer.json()["detail"]
    assert world.ann.get(f"/jobs/{job}").json()["state"] != "stopped"
    assert world.ann.post("/tokens", json={"scope": "write"}).status_code == 422


def test_an_administrator_may(world: World) -> None:
    job = world.submit(world.ann, max=2)["id"]
    (world.files(job).output.checkpoint / "step-00000001").mkdir()
    for method, path, content in sorted(OWNERS_ONLY, key=lambda one: (one[0] == "DELETE", one[1] == "/stop")):
        if method == "DELETE":
            world.go(job, State.STOPPED)
        answer = world.admin.request(method, f"/jobs/{job}{path}", json=content)
        assert answer.status_code in (200, 204), (method, path, answer.text)


def test_others_see_a_jobs_size_but_not_what_it_does(world: World) -> None:
    secrets = {"environment": {"SECRET": "s3cret"}, "command": ["python", "s3cret.py"]}
    job = world.submit(world.ann, **secrets, max=3, code=tar({"s3cret.py": b""}))["id"]
    world.store.jobs.record({job: {"failure": "s3cret", "size": 2}})
    for answer in (world.bob.get(f"/jobs/{job}"), world.bob.get("/jobs"), world.bob.get(f"/jobs/{job}/why")):
        assert answer.status_code == 200
        assert "s3cret" not in answer.text
    shown = world.bob.get(f"/jobs/{job}").json()
    assert shown["size"] == 2
    assert [shown[name] for name in PRIVATE] == [None] * len(PRIVATE)
    assert world.ann.get(f"/jobs/{job}").json()["environment"] == {"SECRET": "s3cret"}


def test_administration_is_for_administrators(world: World) -> None:
    for method, path, content in ADMINS_ONLY:
        assert world.ann.request(method, path, json=content).status_code == 403, (method, path)
        assert world.admin.request(method, path, json=content).status_code < 300, (method, path)
    answer = world.ann.post("/jobs", data={"spec": '{"command": ["true"], "path": "/etc"}'})
    assert answer.status_code == 403  # folders of the machine


PATHS = ["/api/v1/", *(f"/api/v1/{path}" for path in ("jobs", "jobs/jaaaaaaaa/logs", "nothing"))]
PATHS += ["/metrics", "/openapi.json"]
HEADERS = [None, "Bearer", "Bearer nonsense", "Basic YW5uOng=", "Bearer \xff"]


def test_without_a_token_there_is_nothing(world: World) -> None:
    for path, header in itertools.product(PATHS, HEADERS):
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        answer = world.anybody.get(path, headers=headers)
        assert answer.status_code == 401, (path, header)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["content-type"] == "application/problem+json"


def test_revoked_and_expired_tokens_open_nothing(world: World) -> None:
    made = world.ann.post("/tokens", json={"name": "ci", "expires": world.clock.now + 10}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert world.anybody.get("/api/v1/", headers=headers).json()["user"] == "ann"
    world.clock.now += 11
    assert world.anybody.get("/api/v1/", headers=headers).status_code == 401
    own = world.ann.get("/tokens").json()["tokens"]
    assert {token["name"] for token in own} == {"test", "ci"}
    assert world.tokens["ann"] not in str(own)
    used = next(token["id"] for token in own if token["name"] == "test")
    assert world.bob.delete(f"/tokens/{used}").status_code == 404
    assert world.ann.delete(f"/tokens/{used}").status_code == 204
    assert world.ann.get("/").status_code == 401


def test_what_a_token_makes_ends_no_later_than_it_does(world: World) -> None:
    end = world.clock.now + 10
    made = world.ann.post("/tokens", json={"expires": end}).json()
    ending = world.client(made["token"])
    asked = ({}, {"expires": end + 5}, {"expires": end - 5})
    children = [ending.post("/tokens", json=one).json() for one in asked]
    assert [child["expires"] for child in children] == [end, end, end - 5]
    assert {child["parent"] for child in children} == {made["id"]}
    assert ending.put("/users/ann/password", json={"password": "correct horse"}).status_code == 403


def test_what_a_token_has_made_is_revoked_with_it(world: World) -> None:
    first = world.ann.post("/tokens", json={}).json()
    second = world.client(first["token"]).post("/tokens", json={}).json()
    third = world.client(second["token"])
    assert third.get("/").status_code == 200
    assert world.ann.delete(f"/tokens/{first['id']}").status_code == 204
    assert third.get("/").status_code == 401
    assert [one["name"] for one in world.ann.get("/tokens").json()["tokens"]] == ["test"]


def test_another_password_can_end_the_tokens_but_the_one_that_asks(world: World) -> None:
    asking = world.client(world.ann.post("/tokens", json={}).json()["token"])
    made = world.client(asking.post("/tokens", json={}).json()["token"])
    new = {"password": "correct horse"}
    assert asking.put("/users/ann/password", json=new).status_code == 204
    assert [one.get("/").status_code for one in (world.ann, asking, made)] == [200, 200, 200]
    assert asking.put("/users/ann/password", json={**new, "revoke_tokens": True}).status_code == 204
    assert [one.get("/").status_code for one in (world.ann, asking, made)] == [401, 200, 401]
    assert world.admin.put("/users/ann/password", json={**new, "revoke_tokens": True}).status_code == 204
    assert [one.get("/").status_code for one in (world.admin, asking)] == [200, 401]


def test_what_an_administrators_token_makes_for_others_ends_with_it(world: World) -> None:
    end = world.clock.now + 10
    ending = world.client(world.admin.post("/tokens", json={"expires": end}).json()["token"])
    assert ending.post("/tokens", json={"user": "ann"}).json()["expires"] == end
    carl = ending.post("/users", json={"name": "carl"}).json()
    assert carl["expires"] == end
    assert world.admin.post("/users", json={"name": "dora"}).json()["expires"] is None
    assert ending.put("/users/carl/password", json={"password": "correct horse"}).status_code == 403
    world.clock.now = end
    assert world.client(carl["token"]).get("/").status_code == 401


def test_tokens_for_others_are_made_by_administrators(world: World) -> None:
    for answer in (world.bob.post("/tokens", json={"user": "ann"}), world.bob.get("/tokens?user=ann")):
        assert (answer.status_code, "only administrators" in answer.json()["detail"]) == (403, True)
    made = world.admin.post("/tokens", json={"user": "ann"}).json()
    assert world.client(made["token"]).get("/").json()["user"] == "ann"
    assert world.admin.post("/tokens", json={"user": "nobody"}).status_code == 404


def test_a_new_user_gets_a_token_and_a_share(world: World) -> None:
    made = world.admin.post("/users", json={"name": "carl"}).json()
    carl = {"Authorization": f"Bearer {made['token']}"}
    assert world.anybody.get("/api/v1/", headers=carl).json() == {
        "version": "0.1.0",
        "user": "carl",
        "is_admin": False,
    }
    assert "carl" in [node["name"] for node in world.ann.get("/shares").json()["shares"]]
    assert world.admin.post("/users", json={"name": "carl"}).status_code == 409
    assert world.admin.post("/users", json={"name": "../x"}).status_code == 422
    assert world.admin.delete("/users/carl").status_code == 204
    assert world.anybody.get("/api/v1/", headers=carl).status_code == 401
    assert world.admin.delete("/users/carl").status_code == 404


def test_the_next_user_of_a_name_gets_nothing_of_the_one_before(world: World) -> None:
    made = world.admin.post("/users", json={"name": "carl"}).json()
    job = world.submit(world.client(made["token"]), key="one", environment={"SECRET": "s3cret"})["id"]
    world.go(job, State.STOPPED)
    assert world.admin.delete("/users/carl").status_code == 204
    carl = world.client(world.admin.post("/users", json={"name": "carl"}).json()["token"])
    assert "s3cret" not in carl.get(f"/jobs/{job}").text + carl.get("/jobs").text
    assert carl.get(f"/jobs/{job}/logs").status_code == 403
    assert world.admin.get("/jobs?owner=carl~1&all=1").json()["jobs"][0]["owner"] == "carl~1"
    assert world.submit(carl, key="one")["id"] != job


def test_passwords_are_set_by_their_owners_and_administrators(world: World) -> None:
    new = {"password": "correct horse"}
    assert world.ann.put("/users/ann/password", json=new).status_code == 204
    assert (world.store.accounts.password("ann") or "").startswith("$argon2id$")
    assert world.admin.put("/users/bob/password", json=new).status_code == 204
    assert world.ann.put("/users/bob/password", json=new).status_code == 403
    assert world.admin.put("/users/nobody/password", json=new).status_code == 404
    for bad in ("short", "x" * 1025, "edt_looks_like_a_token", "nul \0 inside it"):
        assert world.ann.put("/users/ann/password", json={"password": bad}).status_code == 422


def test_users_with_jobs_and_oneself_stay(world: World) -> None:
    post_job(world.ann)
    assert world.admin.delete("/users/ann").status_code == 409
    assert world.admin.delete("/users/admin").status_code == 409
