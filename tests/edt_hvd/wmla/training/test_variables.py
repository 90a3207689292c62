import json
import sys
from collections import OrderedDict
from types import ModuleType
from typing import Any

import edt_hvd
from edt_hvd.wmla.training.variables import MISSING, variables_of

SCRIPT = """
def third():
    global deep
    deep = first

def second():
    return third()

def first():
    global stored
    stored = second(), later

def around(value):
    class Inner:
        def get(self):
            return lambda: value, given

        def give(self):
            global late
            nonlocal given
            given = late = attribute.stored
    if value is None:
        given = 0
    return Inner()

class Outer:
    def use(self):
        first()
        return [read for _ in dumps(stored)]
"""


def script() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "a_script", "dumps": json.dumps, "read": 1}
    exec(SCRIPT, names)
    return names


def test_what_methods_and_the_functions_that_they_call_use() -> None:
    names = script()
    found = variables_of([names["Outer"]()])
    names_of_all = ("first", "second", "third", "deep", "stored", "later", "read", "dumps")
    assert found.keys() == {f"a_script:{name}" for name in names_of_all}
    assert sorted(each.name for each in found.values() if each.is_assigned) == ["deep", "stored"]
    assert found["a_script:read"].value == 1
    assert found["a_script:later"].value is MISSING
    found["a_script:stored"].assign(3)
    assert names["stored"] == 3


def test_variables_of_functions_around() -> None:
    found = variables_of([script()["around"](5)])
    given = found["0:a_script:around.<locals>.Inner.give:given"]
    assert (given.is_assigned, given.value) == (True, MISSING)
    given.assign(4)
    assert found["0:a_script:around.<locals>.Inner.get:given"].value == 4
    assert found["0:a_script:around.<locals>.Inner.get:value"].value == 5
    assert found["a_script:late"].is_assigned


COUNTS = """
calls = steps = left = seen = 0
def note():
    global calls
    calls += 1
class Inside:
    value = 0
"""

COUNTING = """
class Counting:
    def use(self):
        counts.note()
        counts.steps += counts.seen
        counts.inner.left = 1
        counts.Inside.value = 1
        json.seen = other.left
        match self:
            case counts.seen: pass
        edt_hvd.size()
"""


def module(name: str, file: str, source: str = "", **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names, __file__=file)
    exec(source, vars(made))
    return made


def test_variables_of_the_scripts_modules() -> None:
    inner = module("inner", "/a/inner.py", left=0)
    counts = module("counts", "/a/counts.py", COUNTS, inner=inner)
    names = {"counts": counts, "json": json, "sys": sys, "edt_hvd": edt_hvd}
    script = module("a_script", "/a/script.py", COUNTING, **names)
    found = variables_of([script.Counting()])
    assert {key for key, each in found.items() if each.is_assigned} == {
        *("counts:calls", "counts:steps", "inner:left")
    }
    assert found["counts:seen"].value == 0
    found["counts:steps"].assign(4)
    assert counts.steps == 4
    assert not [key for key in found if key.startswith(("json:", "edt_hvd:"))]


def test_what_was_installed_is_not_looked_into() -> None:
    assert variables_of([OrderedDict(), json.JSONDecoder()]) == {}


def test_closures_of_one_factory_are_apart() -> None:
    def counting(by: int) -> Any:
        count = 0

        class Counting:
            def on_epoch_begin(self, epoch: int) -> None:
                nonlocal count
                count += by

        return Counting()

    owners = [counting(1), counting(10)]
    for owner in owners:
        owner.on_epoch_begin(0)
    assert [each.value for key, each in variables_of(owners).items() if each.name == "count"] == [1, 10]
