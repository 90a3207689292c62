"""Hides secrets in what others read: variables that are called like one, passwords in addresses, tokens."""

import re
from collections.abc import Mapping

HIDDEN = "…"

_SECRET = re.compile(r"secret|token|passw|pwd|key|credential|auth|access", re.IGNORECASE)

_TOKEN = re.compile(r"edt_[A-Za-z0-9_-]{16,}")

MIN_MASKED_CHARACTERS = 8
"""Characters of a variable's value from which on it is recognized in a text."""

_PASSWORDS = (
    re.compile(r"(://[^/\s:@]*:)\S+(?=@)"),
    re.compile(r"(https?://)[^/\s:@]+(?=@)"),
    re.compile(rf"([?&;][^=&;\s]*(?:{_SECRET.pattern}|sig)[^=&;\s]*=)[^&;\s'\"]+", re.IGNORECASE),
)
"""What is secret in addresses: `postgresql://ann:secret@host`, `https://token@host`, `?password=secret`."""


def hides(name: str) -> bool:
    """Whether what has this name is a secret."""
    return _SECRET.search(name) is not None


def masked(name: str, value: str) -> str:
    """The value of a variable without what is secret in it."""
    return HIDDEN if hides(name) else without_passwords(value)


def without_passwords(text: str) -> str:
    """A text without what is secret in the addresses in it."""
    for password in _PASSWORDS:
        text = password.sub(rf"\1{HIDDEN}", text)
    return text


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """A text, such as a traceback, without what is secret in the environment, and without tokens."""
    secrets = {
        value.strip() for name, value in environment.items() if hides(name) and name not in ("PWD", "OLDPWD")
    }
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= MIN_MASKED_CHARACTERS:
            text = text.replace(value, HIDDEN)
    return without_passwords(_TOKEN.sub(HIDDEN, text))
