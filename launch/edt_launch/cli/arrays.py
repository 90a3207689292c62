"""The indices of an array of jobs, as Slurm writes them."""

from edt_launch.cli.errors import MistakenError
from edt_launch.core.text import written
from edt_launch.core.text.written import MAX_JOBS, Indices

__all__ = ["MAX_JOBS", "Indices", "indices"]


def indices(text: str) -> Indices:
    """As `written.indices`; raises `MistakenError`."""
    try:
        return written.indices("--array", text)
    except written.WrittenError as error:
        raise MistakenError(*error.args) from None
