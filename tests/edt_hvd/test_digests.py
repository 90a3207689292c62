import enum
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from edt_hvd.digests import digest, parts_of


@dataclass
class Options:
    rate: float = 0.1
    names: set[str] = field(default_factory=lambda: {"a", "b", "c"})


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Plain:
    def __init__(self, value) -> None:
        self.value = value


ALL_DIFFERENT = [
    *(None, 0, False, 0.0, -0.0, "0", b"0", [], {}, {"a": 0}, {0}, Options(), Colour.RED, Plain(1)),
    *(np.zeros(2), np.zeros(2, np.float32)),
    *(torch.zeros(2), torch.tensor([0.0, -0.0]), torch.eye(2).to_sparse()),
]


def test_different_values_have_different_digests():
    assert len({digest(value) for value in ALL_DIFFERENT}) == len(ALL_DIFFERENT)


@pytest.mark.parametrize("view", [lambda t: t.t().contiguous().t(), lambda t: t.clone().requires_grad_()])
def test_only_the_bits_of_a_tensor_count(view):
    tensor = torch.randn(3, 4)
    assert digest(view(tensor)) == digest(tensor)


def test_another_process_comes_to_the_same(interpreters):
    """Its hash seed is another one: sets of strings have another order there."""
    found = interpreters.run("from edt_hvd.digests import digest; print(digest(set('abcdef')))")
    assert found.stdout.strip() == digest(set("abcdef"))


def test_an_object_may_contain_itself():
    a, b = Plain(1), Plain(2)
    a.self, b.self = a, b
    assert digest(a) != digest(b)


def square(value):
    return value * value


def local():
    def square(value):
        return value * value

    return square


def test_what_cannot_be_pickled_counts_by_its_name():
    values = [square, lambda x: x, local(), threading.Lock(), (x for x in ())]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"transform": local()}) == digest({"transform": local()})
    assert digest(threading.Lock()) == digest(threading.Lock())


def test_the_parts_of_a_value_are_told_apart_by_their_names_in_python() -> None:
    nest = {"a": [1, torch.ones(2)], "b": SimpleNamespace(x="y" * 3000)}
    nest["b"].own = nest
    found = parts_of(nest)
    assert list(found) == ["['a'][0]", "['a'][1]", "['a']", "['b'].x", "['b'].own", "['b']", ""]
    assert found["['a'][0]"] == "1"
    assert parts_of(list(range(40))).keys() == {""}
    assert parts_of("x" * 3000 + "1") != parts_of("x" * 3000 + "2")
