"""The pages above a page, and its parts."""

from typing import NamedTuple


class Crumb(NamedTuple):
    """A page above this one."""

    address: str
    name: str


class Tab(NamedTuple):
    """A link to a part of a page, and whether that is shown."""

    name: str
    address: str
    is_chosen: bool


JOBS = Crumb("/jobs", "Jobs")
DATA = Crumb("/data", "Data")
EXPERIMENTS = Crumb("/experiments", "Experiments")


def project(id_: str, name: str) -> list[Crumb]:
    """Those above what belongs to a project."""
    return [EXPERIMENTS, Crumb(f"/experiments/projects/{id_}", name)]
