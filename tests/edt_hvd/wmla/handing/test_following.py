import importlib
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from edt_hvd.wmla.handing.following import Following
from edt_hvd.wmla.handing.generators import Generators
from edt_hvd.wmla.handing.modules import Change, Given, Start
from edt_hvd.wmla.handing.pickling import Names, dumps

START = Start(["script", "--driver"], Generators.now())


class Absent:
    """Cannot be made where executors are."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return importlib.import_module, ("nowhere_at_all",)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Modules made here can be imported, and are gone afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def follow(folder: Path, **given: Given) -> Following:
    following = Following(str(folder), given)
    following.install()
    return following


def changed(outer: str | None = None, **changes: object) -> Given:
    content: Mapping[Names, Change] = {
        (name,): Change(False, False, dumps(v, {})) for name, v in changes.items()
    }
    return Given(START, outer, (), content)


def test_a_module_finds_the_driver_s_arguments_and_has_what_was_set(folder: Path) -> None:
    (folder / "first.py").write_text("import sys\nseen = list(sys.argv)\nsetting = 1\n")
    present = list(sys.argv)
    following = follow(folder, first=changed(setting=2))
    first = importlib.import_module("first")
    assert (first.seen, first.setting) == (["script", "--driver"], 2)
    assert sys.argv == present
    following.hand_out({("first", ("setting",)): 3})
    assert first.setting == 3


@pytest.mark.parametrize("outer, goes_on", [("outer", True), (None, False)])
def test_random_numbers_go_on_as_in_the_driver(folder: Path, outer: str | None, goes_on: bool) -> None:
    (folder / "outer.py").write_text("import random, inner\nafter = random.random()\n")
    (folder / "inner.py").write_text("import random\nvalue = random.random()\n")
    follow(folder, outer=changed(), inner=changed(outer))
    before = random.getstate()
    value = importlib.import_module("inner").value
    assert random.getstate() == before
    del sys.modules["inner"]
    assert (importlib.import_module("outer").after != value) is goes_on


def test_changes_that_refer_to_what_is_being_imported_come_later(folder: Path) -> None:
    (folder / "registry.py").write_text("ALL = {}\n")
    (folder / "zoo.py").write_text("import registry\nsize = len(registry.ALL)\nclass Big: pass\n")
    big = importlib.import_module("zoo").Big
    content = dumps({"big": big}, {})
    for name in ("zoo", "registry"):
        del sys.modules[name]
    follow(folder, zoo=changed(), registry=Given(START, None, (), {("ALL",): Change(True, False, content)}))
    zoo = importlib.import_module("zoo")
    assert {"big": zoo.Big} == zoo.registry.ALL
    assert zoo.size == 0


def test_what_cannot_be_made_is_named(folder: Path) -> None:
    (folder / "first.py").write_text("class Held: pass\n")
    (folder / "second.py").write_text("import first\n")
    follow(folder, first=changed(setting=Absent()), second=changed())
    words = r"first\.setting, as the script has set it, cannot be made in an executor: .*nowhere_at_all"
    for name in ("first", "second"):
        sys.modules.pop("first", None)
        with pytest.raises(RuntimeError, match=words):
            importlib.import_module(name)


def test_an_attribute_of_what_only_the_driver_has_is_a_warning(folder: Path) -> None:
    (folder / "first.py").write_text("held = None\n")
    follow(folder, first=Given(START, None, (), {("other", "size"): Change(False, False, dumps(1, {}))}))
    with pytest.warns(
        UserWarning, match=r"first\.other is not there: no other; what the script has put there"
    ):
        importlib.import_module("first")


def test_modules_that_fill_another_one_do_so_first(folder: Path) -> None:
    (folder / "registry.py").write_text("ALL = []\n")
    (folder / "fills.py").write_text(
        "import registry\nassert registry.ALL == []\nregistry.ALL.append('it')\n"
    )
    changes = {("ALL",): Change(True, True, dumps(["it", "more"], {}))}
    follow(folder, registry=Given(START, None, ["fills"], changes), fills=changed())
    registry = importlib.import_module("registry")
    assert registry.ALL == ["it", "more"]
    assert "fills" in sys.modules
