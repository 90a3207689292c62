"""Hides secrets in what others read: variables that are called like one, and passwords in addresses."""

import re

HIDDEN = "…"

_SECRET = re.compile(r"secret|token|passw|pwd|key|credential|auth|access", re.IGNORECASE)

_PASSWORD = re.compile(r"(://[^/\s:@]*:)\S+@")
"""What is secret in an address: `postgresql://ann:secret@host/name`."""


def masked(name: str, value: str) -> str:
    """The value of a variable without what is secret in it."""
    return HIDDEN if _SECRET.search(name) else _PASSWORD.sub(rf"\1{HIDDEN}@", value)
