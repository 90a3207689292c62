"""The errors of readers, which name the field, the value and what was expected."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from edt_messages.records import Count, Seconds, Value, reader


@dataclass(frozen=True)
class Record:
    count: Count = 1
    seconds: Seconds = 0.0
    name: str | None = None
    words: Annotated[tuple[str, ...], (1, 3)] = ("a",)
    pair: tuple[int, str] = (1, "a")
    environment: Mapping[str, str] | None = None
    values: Mapping[str, Value] | None = None
    class_: str = ""


read = reader(Record)


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"count": 0}, "count: 0, expected int from 1 to less than 2147483648"),
        ({"count": "3"}, "count: '3', expected int from 1"),
        ({"seconds": float("nan")}, "seconds: nan, expected float from 0"),
        ({"name": 1}, "name: 1, expected str"),
        ({"words": ["a"] * 3}, "words: list, expected 1 to less than 3 items"),
        ({"words": ["a", 1]}, "words: 1, expected str"),
        ({"pair": [1]}, "pair: list, expected 2 items"),
        ({"values": {"loss": []}}, "values: list, expected a number of 64 bits, a text or a boolean"),
    ],
)
def test_the_error_names_field_value_and_what_was_expected(wrong: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(error)}"):
        read(wrong)


def test_the_error_shows_nothing_of_an_environment() -> None:
    with pytest.raises(ValueError, match=r"^environment: list, expected dict$"):
        read({"environment": ["SECRET=1"]})
