"""What the schemas of all features are made with."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

MAX_TIME = 253402300799.0
"""The last second of the year 9999, after which no date can be shown."""

UnixTime = Annotated[float, Field(ge=0, le=MAX_TIME, allow_inf_nan=False)]


def listing(name: str, doc: str, **items: type[BaseModel]) -> type[BaseModel]:
    """The schema of an object whose only field is a list."""
    fields: Any = {field: (list[item], ...) for field, item in items.items()}  # type: ignore[valid-type]
    model: type[BaseModel] = create_model(name, __doc__=doc, __module__=__name__, **fields)
    return model


class Body(BaseModel):
    """What is sent; fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid")
