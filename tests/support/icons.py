"""The icons of the pages: a sprite of those that templates use, made of @tabler/icons.

`python tests/support/icons.py` writes it anew after a template has begun to use another one.
"""

import json
import re

import npm
from edt_launch.service.web import templating

VERSION = "3.52.0"
SPRITE = templating.HERE / "static" / "vendor" / f"tabler-icons-{VERSION}.svg"
USED = re.compile(r'icon\("([a-z0-9-]+)"\)')


def used() -> list[str]:
    """Names of the icons that templates use."""
    texts = [path.read_text() for folder in templating.TEMPLATES for path in folder.rglob("*.html")]
    return sorted(
        {name for text in texts for name in USED.findall(text)} | {icon for *_, icon in templating.PLACES}
    )


def sprite() -> str:
    """What the file holds."""
    nodes = json.loads(npm.file_of("@tabler/icons", VERSION, "tabler-nodes-outline.json"))
    symbols = [f'<symbol id="{name}" viewBox="0 0 24 24">{_drawn(nodes[name])}</symbol>' for name in used()]
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg">', *symbols, "</svg>\n"])


def _drawn(parts: list[tuple[str, dict[str, str]]]) -> str:
    texts = [(tag, [f'{key}="{value}"' for key, value in attributes.items()]) for tag, attributes in parts]
    return "".join(f"<{tag} {' '.join(attributes)}/>" for tag, attributes in texts)


if __name__ == "__main__":
    SPRITE.write_text(sprite())
