"""Other interfaces to the service, for other systems' clients: entry points of the group `EXTENSIONS`."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from prometheus_client import Histogram
from starlette.types import ASGIApp, Scope

from edt_launch.service.app.context import Context
from edt_launch.service.db.store import Store
from edt_launch.service.experiments.searches.trials import Trials

EXTENSIONS = "edt_launch.service"
"""The group; each entry point names a module with the functions of `Extension`."""


class Extension(Protocol):
    """Another interface to the service."""

    def settle(self, store: Store) -> None:
        """Put in order what a service that was killed has left; while nothing is being taken in."""

    def serves(self, scope: Scope) -> bool:
        """Whether a request belongs to this interface."""

    def application(self, context: Context, seconds: Histogram) -> ASGIApp:
        """What answers requests for its paths; `seconds` observes the time that answers take."""

    def trials(self, context: Context) -> Mapping[str, Trials]:
        """What makes jobs of trials, by the kind of its searches."""


@cache
def extensions() -> tuple[Extension, ...]:
    """All of them; the first that serves a request answers it."""
    found = sorted(entry_points(group=EXTENSIONS), key=lambda point: point.name)
    return tuple(point.load() for point in found)
