from typing import Any

import pytest

from browser import browser, shown_again
from lab import CODE, Lab
from world import World, tar

OTHER = tar({"train.py": b"", "b.py": b""})
FIELDS = {"name": "net", "description": "", "framework": "Horovod", "command": "python train.py"}


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)


def edit(lab: Lab, definition: str, user: str = "ann", code: bytes | None = None, **given: str) -> Any:
    files = None if code is None else {"code": ("new.zip", code)}
    address = f"/experiments/definitions/{definition}/edit"
    return browser(lab.world, user).post(address, data=FIELDS | {"version": "1"} | given, files=files)


def shown(lab: Lab, definition: str) -> Any:
    return lab.ann.get(f"/definitions/{definition}").json()


def test_the_same_code_changes_nothing(lab: Lab) -> None:
    definition = lab.definition()["id"]
    before = shown(lab, definition)
    assert edit(lab, definition, code=CODE).status_code == 303
    assert edit(lab, definition, code=b"").status_code == 422
    assert shown(lab, definition) == before
    assert edit(lab, definition, code=CODE, description="d").status_code == 303
    after = shown(lab, definition)
    assert (after["description"], after["version"], after["codes"]) == ("d", 2, before["codes"])


@pytest.mark.parametrize(
    "given, code, status, said",
    [
        ({"name": "other"}, None, 409, "a training definition &#39;other&#39; already"),
        ({"command": "python '"}, None, 422, "close its quotes"),
        ({"command": "python b.py"}, None, 422, "is not a file of the submitted code"),
        ({"framework": "caffe"}, OTHER, 422, "does not run here"),
        ({"description": "d"}, b"no archive", 422, "choose it again."),
        ({"description": "d", "command": "python c.py"}, OTHER, 422, "is not a file of the submitted code"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    lab: Lab, given: Any, code: bytes | None, status: int, said: str
) -> None:
    lab.definition(name="other", code=None)
    definition = lab.definition()["id"]
    before = shown(lab, definition)
    answer = edit(lab, definition, code=code, **given)
    shown_again(answer, status, said, 'name="version" value="1"')
    assert shown(lab, definition) == before
    assert len(list(lab.world.settings.paths.definition(definition).iterdir())) == 1


def test_the_second_of_two_is_told_what_the_first_has_changed(lab: Lab) -> None:
    lab.join("bob", "editor")
    definition = lab.definition()["id"]
    assert edit(lab, definition, "bob", command="python train.py -b").status_code == 303
    answer = edit(lab, definition, description="a", code=OTHER)
    shown_again(
        answer, 409, "bob changed &#39;net&#39; 0 s ago", 'name="version" value="2"',
        "execution command python train.py -b (yours: python train.py)", "description empty (yours: a)",
        "(yours: new.zip)",
    )  # fmt: skip
    assert edit(lab, definition, version="2", description="a").status_code == 303
    assert shown(lab, definition)["command"] == ["python", "train.py"]
