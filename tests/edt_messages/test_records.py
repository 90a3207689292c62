"""The errors of readers."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from edt_messages.records import reader


@dataclass(frozen=True)
class Record:
    environment: Mapping[str, str] | None = None


def test_the_error_shows_nothing_of_an_environment() -> None:
    with pytest.raises(ValueError, match=r"^environment: list, expected dict$"):
        reader(Record)({"environment": ["SECRET=1"]})
