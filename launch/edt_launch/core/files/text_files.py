"""Text files that users write, with any editor."""

import codecs
from pathlib import Path


def decoded(data: bytes, errors: str = "strict") -> str:
    """Text in UTF-8 or, with a byte order mark, in UTF-16, as editors of Windows write it; without the mark.

    Raises:
        UnicodeDecodeError: it is neither, and `errors` is strict.
    """
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf16 else "utf-8-sig", errors).replace("\r\n", "\n")


def read_text(path: Path) -> str:
    """The text of a file; raises OSError, and UnicodeDecodeError as `decoded` does."""
    return decoded(path.read_bytes())
