"""Projects, definitions, experiments and runs in the database, of each kind."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from edt_launch.service.database.account_records import UserRecord
from edt_launch.service.database.definitions import TooManyError
from edt_launch.service.database.engine import Database
from edt_launch.service.database.experiments import GoneError
from edt_launch.service.database.migrate import migrate
from edt_launch.service.database.project_records import (
    CodeRecord,
    DefinitionRecord,
    Distribution,
    ExperimentRecord,
    MemberRecord,
    ProjectRecord,
    Role,
    RunRecord,
    TrainingRecord,
)
from edt_launch.service.database.projects import InUseError
from edt_launch.service.database.records import JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.states import State
from records import write_run

PROJECT = ProjectRecord("paaaaaaaa", "digits", "d", "ann", 1.0, 1.0, "ann")
NET = DefinitionRecord("daaaaaaaa", PROJECT.id, "net", "", "Horovod", ("x", "ü"), "ann", 1.0, 1.0, "ann", 1)
CODE = CodeRecord(NET.id, 1, "0" * 64, "code.zip", 2**40, "ann", 1.0)
FIRST = ExperimentRecord("xaaaaaaaa", PROJECT.id, "first", "", "mnist", (), "", "", "ann", 1.0, 1.0, "ann")
TRAINING = TrainingRecord(FIRST.id, 0, NET.id, Distribution.ELASTIC, 1, 1, 4)
RUN = RunRecord("raaaaaaaa", FIRST.id, NET.id, "net", 1, "0" * 64, "jaaaaaaaa", "ann", 2.0, {"min": 1})


@pytest.fixture
def filled(store: Store) -> Iterator[Store]:
    for name in ("ann", "bob"):
        store.accounts.add_user(UserRecord(name))
    assert store.projects.add(PROJECT)
    assert store.definitions.add(NET, CODE)
    assert store.experiments.add(FIRST, [TRAINING])
    return store


def test_all_comes_back_as_it_was_stored(filled: Store) -> None:
    project, net, first = (
        filled.projects.get("digits"),
        filled.definitions.get(NET.id),
        filled.experiments.get(FIRST.id),
    )
    assert project is not None
    assert net is not None
    assert first is not None
    assert (project, net, first) == (
        replace(PROJECT, number=project.number),
        replace(NET, number=net.number),
        replace(FIRST, number=first.number),
    )
    assert filled.definitions.codes(NET.id) == [CODE]
    assert filled.experiments.trainings(FIRST.id) == [TRAINING]


def test_names_are_given_once_in_a_project(filled: Store) -> None:
    assert not filled.projects.add(replace(PROJECT, id="pbbbbbbbb"))
    assert not filled.definitions.add(replace(NET, id="dbbbbbbbb"), None)
    assert not filled.experiments.add(replace(FIRST, id="xbbbbbbbb"), [])
    other = replace(PROJECT, id="pbbbbbbbb", name="other", owner="bob")
    assert filled.projects.add(other)
    assert filled.definitions.add(replace(NET, id="dbbbbbbbb", project=other.id), None)
    assert filled.experiments.add(replace(FIRST, id="xbbbbbbbb", project=other.id), [])
    assert filled.projects.change(other.id, 1, name="digits") is None
    assert [one.id for one in filled.projects.page("bob", 0, 9)] == [other.id]
    assert [one.id for one in filled.experiments.page("ann", None, None, 0, 9)] == [FIRST.id]
    assert [one.id for one in filled.definitions.page(None, other.id, "net", 0, 9)] == ["dbbbbbbbb"]


def test_of_two_changes_of_a_version_one_is_made(filled: Store) -> None:
    assert filled.projects.change(PROJECT.id, 1, description="a") is True
    assert filled.projects.change(PROJECT.id, 1, description="b") is False
    changes = [filled.experiments.change(FIRST.id, seen, [], metric="x") for seen in (1, 1, 2)]
    assert changes == [True, False, True]
    assert filled.experiments.trainings(FIRST.id) == []
    gone = replace(TRAINING, definition="dzzzzzzzz")
    assert filled.experiments.change(FIRST.id, 3, [gone]) is None
    found = filled.experiments.get(FIRST.id)
    assert found is not None
    assert (found.version, found.metric) == (3, "x")


def test_codes_are_kept_by_their_digests(filled: Store) -> None:
    other = replace(CODE, digest="1" * 64, owner="bob", created=5.0)
    assert filled.definitions.set_code(other, 1, 2) == replace(other, place=2)
    assert filled.definitions.set_code(other, 1, 2) is None
    assert filled.definitions.set_code(replace(CODE, created=6.0), 2, 2) == CODE
    with pytest.raises(TooManyError):
        filled.definitions.set_code(replace(CODE, digest="2" * 64), 3, 2)
    found = filled.definitions.get(NET.id)
    assert found is not None
    assert (found.code, found.version, found.changed) == (1, 3, 6.0)
    assert [code.place for code in filled.definitions.codes(NET.id)] == [1, 2]


def test_what_is_used_stays(filled: Store) -> None:
    with pytest.raises(InUseError) as used:
        filled.definitions.delete(NET.id)
    assert used.value.names == ("first",)
    with pytest.raises(InUseError) as used:
        filled.projects.delete(PROJECT.id)
    assert used.value.names == ("first", "net")
    assert filled.experiments.delete(FIRST.id) == []
    assert filled.definitions.delete(NET.id)
    assert filled.definitions.codes(NET.id) == []
    assert filled.projects.delete(PROJECT.id)
    assert not filled.projects.delete(PROJECT.id)


def test_members_are_users_with_one_role(filled: Store) -> None:
    bob = MemberRecord(PROJECT.id, "bob", Role.VIEWER)
    assert filled.projects.put_member(bob, 1)
    assert filled.projects.put_member(replace(bob, role=Role.EDITOR), 1)
    assert filled.projects.members(PROJECT.id) == [replace(bob, role=Role.EDITOR)]
    assert filled.projects.roles("bob", [PROJECT.id]) == {PROJECT.id: Role.EDITOR}
    assert not filled.projects.put_member(replace(bob, user="ann"), 1)
    assert not filled.projects.put_member(replace(bob, user="eve"), 9)
    assert filled.projects.owned("ann", [PROJECT.id]) == {PROJECT.id}
    assert [one.id for one in filled.projects.page("bob", 0, 9)] == [PROJECT.id]
    filled.accounts.remove_user("bob")
    assert filled.projects.members(PROJECT.id) == []


def test_a_run_is_of_one_job_and_outlives_it(filled: Store) -> None:
    filled.jobs.add(JobRecord(RUN.job, "ann", ("x",), 1, 1, 2.0), RUN)
    with pytest.raises(IntegrityError):
        write_run(filled, replace(RUN, id="rbbbbbbbb"))
    assert filled.experiments.live_jobs(FIRST.id) == [RUN.job]
    assert filled.experiments.delete(FIRST.id) == [RUN.job]
    with pytest.raises(GoneError):
        filled.jobs.add(
            JobRecord("jbbbbbbbb", "ann", ("x",), 1, 1, 2.0), replace(RUN, experiment="xbbbbbbbb")
        )
    assert filled.jobs.ids() == {RUN.job}
    filled.jobs.move(RUN.job, State.STOPPED, "for the test", 3.0)
    assert filled.experiments.live_jobs(FIRST.id) == []
    filled.experiments.record({RUN.id: {"state": "stopped"}})
    assert filled.jobs.delete(RUN.job)
    (run,) = filled.experiments.runs(FIRST.id, None, 9)
    assert run == replace(RUN, number=run.number, outcome={"state": "stopped"})
    assert filled.experiments.run(RUN.id) == run
    assert filled.experiments.runs_of_jobs([RUN.job, "jb"]) == {RUN.job: run}
    assert filled.experiments.runs(FIRST.id, None, 9, ["rbbbbbbbb"]) == []
    assert filled.experiments.runs(FIRST.id, run.number, 9) == []
    assert filled.experiments.run_counts([FIRST.id]) == {FIRST.id: 1}
    assert filled.experiments.delete_run(RUN.id)
    assert not filled.experiments.delete_run(RUN.id)


def test_what_a_removed_user_has_made_is_nobody_elses(filled: Store) -> None:
    assert filled.accounts.remove_user("ann")
    project, net = filled.projects.get("digits"), filled.definitions.get(NET.id)
    assert project is not None
    assert net is not None
    assert (project.owner, net.owner) == ("ann~1", "ann~1")
    assert filled.definitions.codes(NET.id)[0].owner == "ann~1"


def test_a_database_of_the_version_before_has_its_jobs_and_gets_the_tables(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    store = Store(database)
    store.jobs.add(JobRecord("jaaaaaaaa", "ann", ("x",), 1, 1, 2.0))
    tables = ("runs", "trainings", "experiments", "codes", "definitions", "members", "projects")
    with database.writing() as connection:
        for table in tables:
            connection.execute(text(f"DROP TABLE {table}"))
        for column in ("scope", "used"):
            connection.execute(text(f"ALTER TABLE tokens DROP COLUMN {column}"))
        for column in ("code_digest", "start_cost", "attained"):
            connection.execute(text(f"ALTER TABLE jobs DROP COLUMN {column}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0011'"))
    assert migrate(database)
    assert store.projects.add(PROJECT)
    assert store.projects.page(None, 0, 9)[0].id == PROJECT.id
    assert store.jobs.ids() == {"jaaaaaaaa"}
    database.close()
