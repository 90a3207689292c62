"""The interfaces of WMLA in the service."""

from collections.abc import Mapping

from prometheus_client import Histogram
from starlette.types import ASGIApp

from edt_launch.adapters.wmla.hypersearch.create_search import KIND
from edt_launch.adapters.wmla.hypersearch.trials import ExecTrials
from edt_launch.adapters.wmla.rest.app import create_app
from edt_launch.adapters.wmla.rest.bases import is_below
from edt_launch.adapters.wmla.submission.settling import settle
from edt_launch.jobs.experiments.trials import Trials
from edt_launch.service.api.context import Context
from edt_launch.service.database.store import Store
from edt_launch.service.extensions import Extension


class WmlaExtension:
    """WMLA's REST, and what it starts."""

    def settle(self, store: Store) -> None:
        """Assign the names of jobs whose submission was cut off."""
        settle(store)

    def serves(self, path: str) -> bool:
        """Whether a path is below one of WMLA's."""
        return is_below(path)

    def application(self, context: Context, seconds: Histogram) -> ASGIApp:
        """All of WMLA's routes."""
        return create_app(context, seconds)

    def trials(self, context: Context) -> Mapping[str, Trials]:
        """Those of searches."""
        return {KIND: ExecTrials(context)}


EXTENSION: Extension = WmlaExtension()
