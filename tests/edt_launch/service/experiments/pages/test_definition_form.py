from typing import Any

import pytest

from browser import browser, shown_again
from lab import CODE, Lab
from world import tar

OTHER = tar({"train.py": b"", "b.py": b""})
FIELDS = {"name": "net", "description": "", "framework": "Horovod", "command": "python train.py"}


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
