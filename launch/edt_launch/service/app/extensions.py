"""What the service offers beside its REST interface, to browsers and other systems' clients: named here."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Protocol

from prometheus_client import Histogram
from starlette.types import ASGIApp, Scope

from edt_launch.service.app.context import Context
from edt_launch.service.db.store import Store

EXTENSIONS = ("edt_launch.adapters.wmla.extension", "edt_launch.service.web.extension")
"""Modules, each with the functions of `Extension`; the first that serves a request answers it."""


class Extension(Protocol):
    """Another interface to the service."""

    def settle(self, store: Store) -> None:
        """Put in order what a service that was killed has left; while nothing is being taken in."""

    def serves(self, scope: Scope) -> bool:
        """Whether a request belongs to this interface."""

    def application(self, context: Context, seconds: Histogram) -> ASGIApp:
        """What answers requests for its paths; `seconds` observes the time that answers take."""

    def trials(self, context: Context) -> Mapping[str, object]:
        """What makes jobs of trials (`experiments.searches.trials.Trials`), by the kind of its searches."""


@cache
def extensions() -> tuple[Extension, ...]:
    """All of them, imported when they are asked for first."""
    return tuple(import_module(name) for name in EXTENSIONS)
