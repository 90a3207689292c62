"""``edt why``."""

import textwrap
from collections.abc import Mapping
from typing import Any

from edt_launch.cli.screen import number, show, visible, width
from edt_launch.cli.session import AsJson, JobName, connect, print_json


def why(job: JobName, as_json: AsJson = False) -> None:
    """Explain why a job has its size: its share, what binds, and what would change it."""
    service = connect()
    data = service.why(service.resolve(job))
    if as_json:
        print_json(data)
        return
    show(explanation(data, width()))


def explanation(data: Mapping[str, Any], limit: int) -> list[str]:
    """The service's lines, or what it said in pieces, within the screen's width."""
    lines = data.get("lines") or [_path(data), data.get("text"), data.get("change")]
    return [part for line in lines if line for part in _wrapped(visible(line), limit)]


def _path(data: Mapping[str, Any]) -> str:
    nodes = [f"{node.get('node') or 'all'} {number(node.get('share'))}" for node in data.get("path") or ()]
    return f"share: {' > '.join(nodes)}" if nodes else ""


def _wrapped(line: str, limit: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, limit, subsequent_indent=indent + "  ", break_on_hyphens=False) or [""]
