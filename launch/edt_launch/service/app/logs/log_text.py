"""Log lines as a terminal may show them: names and messages in them may come from strangers."""

from collections.abc import MutableMapping
from typing import Any


def without_sequences(_logger: object, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A processor of structlog: texts without what would steer a terminal, in one line but for tracebacks."""
    return {
        name: _printable(value, "\n" if name == "exception" else "") if isinstance(value, str) else value
        for name, value in event.items()
    }


def _printable(text: str, spared: str) -> str:
    return "".join(
        each if each.isprintable() or each in spared else each.encode("unicode_escape").decode()
        for each in text
    )
