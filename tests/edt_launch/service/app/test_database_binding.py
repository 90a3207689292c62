from pathlib import Path

import pytest

from edt_launch.service.app.database_binding import ForeignError, bind
from edt_launch.service.app.first_start import make_home
from edt_launch.service.app.home import Home
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

JOB = "jaaaaaaaa"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    make_home(made)
    return made


def moved(home: Home) -> Home:
    return Home(home.root.rename(home.root.with_name("moved")))


def test_the_first_folder_is_the_databases(home: Home, store: Store, tmp_path: Path) -> None:
    assert [bind(store, home) for _ in range(2)] == [False, True]
    other = Home(tmp_path / "other")
    make_home(other)
    with pytest.raises(ForeignError, match=f"--home {home.root},"):
        bind(store, other)


def test_a_folder_is_not_moved_while_jobs_run(home: Home, store: Store) -> None:
    bind(store, home)
    store.jobs.add(JobRecord(JOB, "ann", ("true",), 1, 1, 1.0))
    store.jobs.move(JOB, State.STARTING, "", 2.0)
    with pytest.raises(ForeignError, match=f"the folder was {home.root} when {JOB}"):
        bind(store, moved(home))
