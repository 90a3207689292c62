"""The launcher's exceptions."""

import pytest

from edt_launch.core import errors
from edt_launch.core.errors import EdtLaunchError, ExitCode


def everything(kind):
    yield kind
    for below in kind.__subclasses__():
        yield from everything(below)


def test_the_tree_is_drawn_in_the_docstring():
    for kind in everything(EdtLaunchError):
        assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    "kind, code",
    [
        (errors.UsageError, ExitCode.USAGE),
        (errors.HostsError, ExitCode.USAGE),
        (errors.StartError, ExitCode.NOT_STARTED),
        (errors.StartTimeoutError, ExitCode.NOT_STARTED),
    ],
)
def test_exit_codes(kind, code):
    assert kind.exit_code == code
