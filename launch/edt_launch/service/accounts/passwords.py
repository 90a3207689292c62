"""Passwords: kept as argon2 hashes, which are slow to compute on purpose.

So that not every request takes that long, a process remembers for a while what it has verified: not the
password but a keyed digest of it, beside the hash that it was verified against. The hash is read again each
time, so a password that has been changed opens nothing from that moment on.
"""

import hashlib
import hmac
import secrets
import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MAX_PASSWORD_LENGTH = 1024
"""Characters of a password; `least_password` of the settings has the other bound."""

REMEMBERED = 300.0
"""Seconds for which something that was verified need not be verified again."""

ENTRIES = 1024
"""How much is remembered at most."""

_HASHER = PasswordHasher()


def hash_of(password: str) -> str:
    """What is kept of a password."""
    return _HASHER.hash(password)


@cache
def _nobodys() -> str:
    """A hash that no password belongs to; verifying against it takes as long as against any other."""
    return _HASHER.hash(secrets.token_hex(32))


class Verifier:
    """Says whether a password belongs to a hash, and remembers that for a while. Any thread may use it.

    The methods take the user's name, the password that was sent, the hash that is kept of the user's password
    now (None without one), and seconds of any clock that only goes forwards.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._verified: dict[bytes, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def remembers(self, name: str, password: str, stored: str | None, now: float) -> bool:
        """Whether exactly that was verified not long ago; quick."""
        with self._lock:
            known, until = self._verified.get(self._digest(name, password), ("", 0.0))
        return stored is not None and known == stored and now < until

    def verify(self, name: str, password: str, stored: str | None, now: float) -> bool:
        """Whether a password belongs to a hash; slow, and as slow when there is no hash."""
        try:
            _HASHER.verify(stored or _nobodys(), password)
        except (VerificationError, InvalidHashError):
            return False
        if stored is None:
            return False
        with self._lock:
            self._verified = {key: entry for key, entry in self._verified.items() if now < entry[1]}
            if len(self._verified) < ENTRIES:
                self._verified[self._digest(name, password)] = (stored, now + REMEMBERED)
        return True

    def _digest(self, name: str, password: str) -> bytes:
        text = f"{len(name)} {name} {password}".encode(errors="surrogateescape")
        return hmac.digest(self._key, text, hashlib.sha256)
