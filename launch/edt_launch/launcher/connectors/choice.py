"""The ways to start agents on other hosts: the one place that names them."""

from collections.abc import Mapping

from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.connectors.connector import Connector
from edt_launch.launcher.connectors.ssh import Ssh

CONNECTORS: tuple[type[Connector], ...] = (Ssh,)
"""The first one that detects itself is used; ssh, the last one, always does."""


def choose(options: RunOptions, environment: Mapping[str, str]) -> Connector:
    """The connector for a job."""
    connectors = (kind.detect(options, environment) for kind in CONNECTORS)
    return next(connector for connector in connectors if connector is not None)
