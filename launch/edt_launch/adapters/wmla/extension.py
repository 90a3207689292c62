"""WMLA's interfaces in the service: the functions of `service.extensions.Extension`."""

from collections.abc import Callable, Mapping

from edt_launch.adapters.wmla.hypersearch.controller import Controller
from edt_launch.adapters.wmla.rest.app import create_app as application
from edt_launch.adapters.wmla.rest.bases import is_below as serves
from edt_launch.adapters.wmla.submission.settling import settle
from edt_launch.service.api.context import Context

__all__ = ["application", "serves", "settle", "threads"]


def threads(context: Context) -> Mapping[str, Callable[[], None]]:
    """What starts the jobs of searches."""
    return {"edt-searches": Controller(context).run}
