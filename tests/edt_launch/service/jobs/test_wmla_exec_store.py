from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import ExecRecord, JobRecord
from edt_launch.service.jobs.states import State

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


def test_names_of_a_job_that_was_not_made_are_given_up_and_not_used_again(store: Store) -> None:
    store.execs.release(store.execs.reserve(made).number)
    assert store.execs.reserve(made).number == 2
