"""Log lines as a terminal may show them: names and messages in them may come from strangers."""

from collections.abc import MutableMapping
from typing import Any

from edt_launch.core.text.terminal_text import visible


def in_visible_characters(_logger: object, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A processor of structlog: texts in one line each, but for tracebacks, that do not steer a terminal."""
    return {
        name: "\n".join(map(visible, value.split("\n") if name == "exception" else [value]))
        if isinstance(value, str)
        else value
        for name, value in event.items()
    }
