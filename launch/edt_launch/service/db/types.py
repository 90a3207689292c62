"""Types of columns, from which `tables` derives theirs: those below say how long a text may be."""

from math import inf
from typing import Annotated

Str16 = Annotated[str, 16]
Str32 = Annotated[str, 32]
Str64 = Annotated[str, 64]
Str128 = Annotated[str, 128]
Str255 = Annotated[str, 255]
Big = Annotated[int, 64]
"""An integer of 64 bits; others have 32."""
Limit = Annotated[float, inf]
"""May be infinite, which is stored as null."""

Devices = tuple[str, ...]
Held = tuple[tuple[str, Devices], ...]
"""Hosts and their devices, in order: ``(("node1", ("0", "3")), ("node2", ("5",)))``."""
