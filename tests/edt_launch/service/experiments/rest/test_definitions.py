import tarfile
import threading
from typing import Any

import pytest

from edt_launch.service.experiments import definitions
from edt_launch.service.experiments.stores.definitions import Definitions
from lab import CODE, Lab, made, refused
from world import member, tar, tar_of

OTHER = tar({"train.py": b"print(2)"})
LINK = tar_of([(member("train.py", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b"")])


def upload(lab: Lab, definition: str, code: bytes, client: Any = None, **headers: str) -> Any:
    files = {"code": ("new.zip", code)}
    return (client or lab.ann).post(f"/definitions/{definition}/code", files=files, headers=headers)


def test_a_definition_and_its_code_are_kept(lab: Lab) -> None:
    shown = lab.definition(description="one layer")
    (code,) = shown["codes"]
    assert (shown["code"], code["place"], code["name"], code["size"]) == (1, 1, "code.tar.gz", len(CODE))
    (folder,) = lab.world.settings.paths.definitions.iterdir()
    assert folder.name == shown["id"]
    assert (folder / code["digest"]).read_bytes() == CODE
    assert list(lab.world.settings.paths.incoming.iterdir()) == []
    assert lab.ann.get(f"/definitions/{shown['id']}").json() == shown
    (listed,) = lab.ann.get("/definitions?project=digits&name=net").json()["definitions"]
    assert listed == {name: value for name, value in shown.items() if name != "codes"}
    assert lab.ann.get("/definitions?name=other").json()["definitions"] == []


def test_what_could_not_be_run_is_refused(lab: Lab) -> None:
    refused(lab.post_definition(code=b"no archive"), 422, "archive")
    refused(lab.post_definition(code=LINK), 422, "train.py")
    refused(lab.post_definition(command=["python", "other.py"]), 422, "is not a file of the submitted code")
    refused(lab.post_definition(code_of="jaaaaaaaa"), 422, "code_of and code are both given")
    assert list(lab.world.settings.paths.definitions.iterdir()) == []
    assert lab.ann.get("/definitions").json()["definitions"] == []


def test_other_code_is_a_new_version_and_the_same_is_not(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = lab.definition()["id"]
    shown = upload(lab, definition, OTHER).json()
    assert (shown["code"], shown["version"], len(shown["codes"])) == (2, 2, 2)
    shown = upload(lab, definition, CODE).json()
    assert (shown["code"], shown["version"], len(shown["codes"])) == (1, 3, 2)
    monkeypatch.setattr(definitions, "MAX_CODES", 2)
    refused(upload(lab, definition, tar({"train.py": b""})), 409, "has 2 versions of its code")
    assert len(list(lab.world.settings.paths.definition(definition).iterdir())) == 2
    stale = {"If-Match": '"1"'}
    refused(upload(lab, definition, OTHER, **stale), 409, "ann changed 'net' 0s ago")


def test_code_that_two_send_at_once_is_kept(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = lab.definition()["id"]
    check, codes = definitions._check, Definitions.codes
    second = threading.Thread(target=upload, args=(lab, definition, OTHER, lab.admin))

    def check_slowly(*given: Any) -> None:
        monkeypatch.setattr(definitions, "_check", check)
        assert lab.admin.patch(f"/definitions/{definition}", json={"description": "d"}).status_code == 200
        monkeypatch.setattr(Definitions, "codes", look_slowly)
        check(*given)

    def look_slowly(self: Definitions, of: str) -> Any:
        monkeypatch.setattr(Definitions, "codes", codes)
        known = codes(self, of)
        second.start()
        second.join(0.5)
        return known

    monkeypatch.setattr(definitions, "_check", check_slowly)
    refused(upload(lab, definition, OTHER), 409, "admin changed 'net'")
    second.join()
    told = [code["digest"] for code in lab.ann.get(f"/definitions/{definition}").json()["codes"]]
    folder = lab.world.settings.paths.definition(definition)
    assert len(told) == 2
    assert {path.name for path in folder.iterdir()} == set(told)


def test_a_viewer_only_looks(lab: Lab) -> None:
    definition = lab.definition()["id"]
    refused(lab.bob.get(f"/definitions/{definition}"), 403, "bob is no member")
    lab.join("bob", "viewer")
    assert lab.bob.get(f"/definitions/{definition}").status_code == 200
    assert len(lab.bob.get("/definitions").json()["definitions"]) == 1
    takes = "that takes an editor"
    refused(lab.post_definition(lab.bob, name="mine"), 403, takes)
    refused(upload(lab, definition, OTHER, lab.bob), 403, takes)
    refused(lab.bob.patch(f"/definitions/{definition}", json={"name": "x"}), 403, takes)
    refused(lab.bob.delete(f"/definitions/{definition}"), 403, takes)
    lab.join("bob", "editor")
    assert upload(lab, definition, OTHER, lab.bob).json()["changed_by"] == "bob"
    refused(lab.ann.get("/definitions/daaaaaaaa"), 404, "there is no training definition")


def test_what_an_experiment_uses_is_not_deleted(lab: Lab) -> None:
    definition = lab.definition()["id"]
    experiment = lab.experiment(definition)["id"]
    refused(lab.ann.delete(f"/definitions/{definition}"), 409, "is used by the experiment 'first'")
    lab.ann.patch(f"/experiments/{experiment}", json={"trainings": []})
    assert lab.ann.delete(f"/definitions/{definition}").status_code == 204
    assert list(lab.world.settings.paths.definitions.iterdir()) == []


def test_a_job_becomes_a_definition(lab: Lab) -> None:
    job = lab.world.submit(lab.ann)["id"]
    (lab.world.files(job).code / "made.txt").write_text("by the job")
    definition = lab.definition(code=None, code_of=job)
    again = lab.definition(code=None, code_of=job, name="again")
    assert definition["codes"][0]["digest"] == again["codes"][0]["digest"]
    (run,) = lab.run(lab.experiment(definition["id"])["id"])
    assert [path.name for path in lab.world.files(run["job"]).code.iterdir()] == ["train.py"]
    lab.join("bob", "editor")
    refused(lab.post_definition(lab.bob, code=None, name="b", code_of=job), 403, "is a job of ann")
    assert made(lab.post_definition(lab.bob, code=None, name="b", code_of=run["job"]))["owner"] == "bob"


def test_a_viewer_takes_no_code_out_of_a_project(lab: Lab) -> None:
    lab.join("bob", "viewer")
    (run,) = lab.run(lab.experiment(lab.definition()["id"])["id"])
    own = made(lab.bob.post("/projects", json={"name": "bob's"}))["id"]
    taken = lab.post_definition(lab.bob, code=None, project=own, name="b", code_of=run["job"])
    refused(taken, 403, "editor")
    assert lab.bob.get(f"/definitions?project={own}").json()["definitions"] == []


def test_strays_of_a_killed_service_are_removed(lab: Lab) -> None:
    definition = lab.definition()["id"]
    home = lab.world.settings.paths
    home.definition("daaaaaaaa").mkdir()
    definitions.remove_strays(home, lab.world.store)
    assert [path.name for path in home.definitions.iterdir()] == [definition]
