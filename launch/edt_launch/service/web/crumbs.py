"""The pages above a page."""

from typing import NamedTuple


class Crumb(NamedTuple):
    """A page above this one."""

    address: str
    name: str


JOBS = Crumb("/jobs", "Jobs")
EXPERIMENTS = Crumb("/experiments", "Experiments")
SEARCHES = Crumb("/searches", "Searches")


def project(id_: str, name: str) -> list[Crumb]:
    """Those above what belongs to a project."""
    return [EXPERIMENTS, Crumb(f"/experiments/projects/{id_}", name)]
