from dataclasses import replace

import pytest

from edt_launch.service.database import execs
from edt_launch.service.database.account_records import TokenRecord, UserRecord
from edt_launch.service.database.job_query import JobQuery
from edt_launch.service.database.records import ExecRecord, JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.states import State

JOB = JobRecord("jaaaaaaaa", "ann", ("main.py",), 1, 2, 1.0)


def made(number: int) -> ExecRecord:
    return ExecRecord(number, f"wmla-{number}", f"driver-{number}", f"app-{number}", " args ", "dli")


def test_names_come_before_their_job_and_go_with_it(store: Store) -> None:
    first = store.execs.reserve(made)
    assert first.number == 1
    assert store.execs.find("wmla-1") is None
    store.jobs.add(JOB)
    store.execs.assign(1, JOB.id)
    store.execs.release(1)
    for name in ("wmla-1", "driver-1", "app-1", JOB.id):
        found = store.execs.find(name)
        assert found is not None
        assert (found.job, found.args, found.group) == (JOB.id, " args ", "dli")
    assert store.execs.of([JOB.id, "jbbbbbbbb"]) == {JOB.id: found}
    assert store.execs.of([]) == {}
    store.jobs.move(JOB.id, State.FAILED, "for the test", 1.0)
    assert store.jobs.delete(JOB.id)
    assert store.execs.find("wmla-1") is None


def test_names_of_many_jobs_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execs, "AT_ONCE", 2)
    jobs = [replace(JOB, id=f"jaaaaaaa{letter}") for letter in "abcde"]
    for number, job in enumerate(jobs, 1):
        store.execs.reserve(made)
        store.jobs.add(job)
        store.execs.assign(number, job.id)
    assert list(store.execs.of([job.id for job in jobs])) == [job.id for job in jobs]


def test_names_of_a_job_that_was_not_made_are_given_up_and_not_used_again(store: Store) -> None:
    store.execs.release(store.execs.reserve(made).number)
    assert store.execs.reserve(made).number == 2


def test_passwords_are_kept_apart_from_users(store: Store) -> None:
    ann = UserRecord("ann", created=1.0)
    store.accounts.add_user(ann)
    assert store.accounts.password("ann") is None
    assert store.accounts.set_password("ann", "hash", 1.0)
    assert not store.accounts.set_password("nobody", "hash", 1.0)
    assert store.accounts.password("ann") == "hash"
    assert store.accounts.users() == [store.accounts.user("ann")] == [ann]


def test_sessions_end_and_other_tokens_stay(store: Store) -> None:
    store.accounts.add_user(UserRecord("ann"))
    for number, is_session in enumerate((True, True, False)):
        token = TokenRecord(f"{number}", f"hash{number}", "ann", "session", 1.0, 10.0, is_session=is_session)
        store.accounts.add_token(token)
    store.accounts.end_session("bob", "hash1", 2.0)
    store.accounts.end_session("ann", "hash0", 2.0)
    store.accounts.end_session("ann", "hash2", 2.0)
    assert [token.id for token in store.accounts.tokens("ann")] == ["1", "2"]
    store.accounts.forget_sessions("ann", 2.0)
    assert [token.id for token in store.accounts.tokens("ann")] == ["1", "2"]
    store.accounts.set_password("ann", "hash", 3.0)
    assert [token.id for token in store.accounts.tokens("ann")] == ["2"]
    store.accounts.forget_sessions("ann", 20.0)
    assert store.accounts.bearer("hash1", 2.0) is None


def test_a_page_can_begin_with_the_newest(store: Store) -> None:
    for name in ("jaaaaaaaa", "jbbbbbbbb", "jcccccccc"):
        store.jobs.add(JobRecord(name, "ann", ("x",), 1, 1, 1.0))
    assert [job.id for job in store.jobs.page(JobQuery(limit=2, newest=True)).jobs] == [
        "jcccccccc",
        "jbbbbbbbb",
    ]
