import pytest

from edt_launch.service.experiments import projects
from lab import Lab, made, refused


def test_a_project_is_its_owners(lab: Lab) -> None:
    shown = lab.ann.get("/projects/digits")
    assert shown.headers["etag"] == '"1"'
    told = {
        "name": "digits",
        "owner": "ann",
        "role": "manager",
        "version": 1,
        "changed_by": "ann",
        "members": [],
    }
    assert shown.json() == shown.json() | told
    assert [one["name"] for one in lab.ann.get("/projects").json()["projects"]] == ["digits"]
    assert lab.bob.get("/projects").json() == {"projects": [], "next": None}
    assert lab.admin.get("/projects").json()["projects"][0]["role"] == "manager"
    refused(lab.bob.get("/projects/digits"), 403, "bob is no member of the project 'digits'", "ask ann")
    refused(lab.bob.get("/projects/nothing"), 404, "there is no project 'nothing'")


def test_a_name_is_given_once(lab: Lab) -> None:
    refused(lab.bob.post("/projects", json={"name": "digits"}), 409, "there is a project 'digits' already")
    other = made(lab.bob.post("/projects", json={"name": "other"}))["id"]
    refused(lab.bob.patch(f"/projects/{other}", json={"name": "digits"}), 409, "choose another name")


@pytest.mark.parametrize(
    "role, sees, changes", [("viewer", 200, 403), ("editor", 200, 403), ("manager", 200, 200)]
)
def test_members_do_what_their_role_allows(lab: Lab, role: str, sees: int, changes: int) -> None:
    lab.join("bob", role)
    assert lab.bob.get("/projects/digits").status_code == sees
    assert lab.bob.get("/projects").json()["projects"][0]["role"] == role
    assert lab.bob.patch("/projects/digits", json={"description": "x"}).status_code == changes
    answer = lab.bob.put("/projects/digits/members/admin", json={"role": "viewer"})
    assert answer.status_code == changes
    if changes == 403:
        refused(answer, 403, f"bob is a{'n' if role == 'editor' else ''} {role}", "that takes a manager")
    assert lab.bob.delete("/projects/digits/members/bob").status_code == 204
    assert lab.bob.get("/projects/digits").status_code == 403


def test_members_are_users_and_not_too_many(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    role = {"role": "editor"}
    refused(lab.ann.put("/projects/digits/members/eve", json=role), 422, "there is no user 'eve'")
    refused(lab.ann.put("/projects/digits/members/ann", json=role), 409, "ann owns the project")
    refused(lab.ann.delete("/projects/digits/members/bob"), 404, "'bob' is no member")
    monkeypatch.setattr(projects, "MAX_MEMBERS", 1)
    lab.join("bob", "viewer")
    lab.join("bob", "editor")
    refused(lab.ann.put("/projects/digits/members/admin", json=role), 409, "has 1 members")


def test_a_project_is_deleted_when_nothing_is_in_it(lab: Lab) -> None:
    lab.join("bob", "editor")
    definition = lab.definition()["id"]
    experiment = lab.experiment(definition)["id"]
    refused(lab.bob.delete("/projects/digits"), 403)
    refused(lab.ann.delete("/projects/digits"), 409, "'first'", "'net'")
    assert lab.ann.delete(f"/experiments/{experiment}").status_code == 204
    assert lab.ann.delete(f"/definitions/{definition}").status_code == 204
    assert lab.ann.delete("/projects/digits").status_code == 204
    assert lab.ann.get("/projects/digits").status_code == 404
