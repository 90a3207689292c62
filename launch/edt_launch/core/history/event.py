"""What all events of a job have in common; `events` has all kinds."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

from edt_messages.records import Seconds


@dataclass(frozen=True)
class Event:
    """Something that has happened to a job.

    Attributes:
        time: unix seconds.
    """

    kind: ClassVar[str]
    time: Seconds = field(default=0.0, kw_only=True)

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if not cls.__name__.startswith("_"):
            KINDS[cls.kind] = cls


KINDS: dict[str, type[Event]] = {}
"""All kinds, in the order of their classes."""
