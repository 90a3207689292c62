from enum import StrEnum
from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from edt_launch.adapters.wmla.hypersearch.hyperparameters import Fields, Int, Value, one_of
from edt_launch.service.experiment_spec import EXACT, Word


class Colour(StrEnum):
    RED = "red"
    GRID = "Grid"


class Painted(Fields):
    main_colour: Annotated[Colour, one_of(Colour)]
    size: float = 1.0


def test_fields_have_their_clients_names_and_ours() -> None:
    assert Painted.model_validate({"mainColour": "red"}) == Painted(main_colour=Colour.RED)
    assert Painted(main_colour=Colour.RED).model_dump(by_alias=True) == {"mainColour": "red", "size": 1.0}


@pytest.mark.parametrize("given, expected", [("RED", Colour.RED), ("gridSearch", Colour.GRID)])
def test_a_member_is_found_by_its_value_or_a_synonym_in_any_case(given: str, expected: Colour) -> None:
    assert Painted.model_validate({"mainColour": given}).main_colour is expected


@pytest.mark.parametrize("given", ["green", "", None, 1, ["red"]])
def test_what_is_no_member_is_told_which_there_are(given: object) -> None:
    with pytest.raises(ValidationError, match="is none of red, Grid"):
        Painted.model_validate({"mainColour": given})


def test_numbers_are_finite() -> None:
    with pytest.raises(ValidationError, match="finite number"):
        Painted.model_validate({"mainColour": "red", "size": "nan"})


@pytest.mark.parametrize(
    "kind, good, bad",
    [
        (Int, EXACT, EXACT + 1),
        (Int, -EXACT, -EXACT - 1),
        (Word, "x" * 128, "x" * 129),
        (Word, "a b", ""),
        (Word, "é", "a\nb"),
        (Value, "", "x" * 4097),
        (Value, "a\nb", "a\0b"),
    ],
)
def test_the_kinds_have_bounds(kind: type, good: object, bad: object) -> None:
    adapter = TypeAdapter(kind)
    assert adapter.validate_python(good) == good
    with pytest.raises(ValidationError):
        adapter.validate_python(bad)
