"""WMLA's interfaces in the service: the functions of `service.app.extensions.Extension`."""

from collections.abc import Mapping

from edt_launch.adapters.wmla.hypersearch.searches import KIND, ExecTrials
from edt_launch.adapters.wmla.rest.app import create_app as application
from edt_launch.adapters.wmla.rest.app import serves
from edt_launch.adapters.wmla.submission.submitting import settle
from edt_launch.service.app.context import Context
from edt_launch.service.experiments.searches.trials import Trials

__all__ = ["application", "serves", "settle", "trials"]


def trials(context: Context) -> Mapping[str, Trials]:
    """Those of searches."""
    return {KIND: ExecTrials(context)}
