"""Hides secrets in what others read: variables that are called like one, passwords in addresses, tokens."""

import re
from collections.abc import Mapping

HIDDEN = "…"

_SECRET = re.compile(r"secret|token|passw|pwd|key|credential|auth|access", re.IGNORECASE)

_TOKEN = re.compile(r"edt_[A-Za-z0-9_-]{16,}")

SHORTEST = 8
"""Characters of a variable's value from which on it is recognized in a text."""

_PASSWORD = re.compile(r"(://[^/\s:@]*:)\S+@")
"""What is secret in an address: `postgresql://ann:secret@host/name`."""


def hides(name: str) -> bool:
    """Whether what has this name is a secret."""
    return _SECRET.search(name) is not None


def masked(name: str, value: str) -> str:
    """The value of a variable without what is secret in it."""
    return HIDDEN if hides(name) else _PASSWORD.sub(rf"\1{HIDDEN}@", value)


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """A text, such as a traceback, without what is secret in the environment, and without tokens."""
    secrets = {
        value.strip() for name, value in environment.items() if hides(name) and name not in ("PWD", "OLDPWD")
    }
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return _PASSWORD.sub(rf"\1{HIDDEN}@", _TOKEN.sub(HIDDEN, text))
