"""WMLA's names for the ways to run a program."""

from enum import StrEnum


class Framework(StrEnum):
    """How a program is run."""

    ELASTIC = "edtPyTorch"
    """The script in a driver, and up to and through `train()` in executors, whose number may change."""
    SINGLE = "PyTorch"
    """The script in one process, with all devices of the job."""
    GANG = "distPyTorch"
    """The script in as many processes as the job has devices, all or none."""

    @classmethod
    def of(cls, name: str | None) -> "Framework | None":
        """The framework of that name; None if it is none of WMLA's."""
        return next((framework for framework in cls if framework == name), None)

    @property
    def is_elastic(self) -> bool:
        """Whether the number of workers may change while the job runs."""
        return self is Framework.ELASTIC
