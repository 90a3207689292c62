"""The web interface in the service: the functions of `service.app.extensions.Extension`."""

from collections.abc import Mapping

from edt_launch.service.db.store import Store
from edt_launch.service.web.app import create_app as application
from edt_launch.service.web.app import serves

__all__ = ["application", "serves", "settle", "trials"]


def settle(store: Store) -> None:
    """Nothing: pages leave nothing half done."""


def trials(context: object) -> Mapping[str, object]:
    """None: pages have no searches of a kind of their own."""
    return {}
