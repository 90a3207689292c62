"""``edt ui``."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from typing import Annotated

from typer import Option

from edt_launch.cli.client.configuration import load
from edt_launch.cli.screen import note
from edt_launch.cli.session import AsJson, connect, print_json


def ui(
    only_print: Annotated[bool, Option("--print", help="Only print the link.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open the service's pages in a browser: by a link that logs it on as you, once, within five minutes."""
    made = connect().call("POST", "logon-links")
    link = f"{load(os.environ).url}{made.get('path')}"
    if as_json:
        print_json({"url": link, "expires": made.get("expires")})
        return
    print(link)
    if not only_print and has_screen(os.environ, sys.platform) and webbrowser.open(link):
        note("opened in a browser; the link logs on once, within five minutes")
    else:
        note("open this in a browser: it logs on once, within five minutes")


def has_screen(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser has a screen to open on; one inside a terminal is not wanted."""
    return platform == "darwin" or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
