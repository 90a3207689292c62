"""What the parts of a search's definition have in common: how fields are named, read and bounded."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from edt_launch.service.experiment_spec import EXACT
from edt_launch.service.names import TEXT

SYNONYMS = {"gridsearch": "Grid", "integer": "int", "float": "double", "string": "str"}
"""Other words that clients use."""

Int = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Value = Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=4096)]


class Fields(BaseModel):
    """An object of the definition."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, allow_inf_nan=False
    )


def one_of(kind: type[StrEnum]) -> BeforeValidator:
    """Finds a member whatever the case; says which there are if there is none."""

    def find(given: object) -> object:
        text = str(given).lower()
        names = (text, SYNONYMS.get(text, text).lower())
        found = next((member for member in kind if member.lower() in names), None)
        if found is None:
            raise ValueError(f"{str(given)!r:.80} is none of {', '.join(kind)}")
        return found

    return BeforeValidator(find)
