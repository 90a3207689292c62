import threading
from dataclasses import replace

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import IllegalTransitionError, State


def job(number: int = 0, **fields: object) -> JobRecord:
    made = JobRecord(
        f"jaaaaaa{chr(97 + number // 26)}{chr(97 + number % 26)}", "ann", ("true",), 1, 4, 100.0 + number
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def test_a_job_comes_back_as_it_was_stored(store: Store) -> None:
    new = job(
        allowed=(1, 2, 4),
        environment={"A": "ü", "B": "x\ny"},
        held=(("node1", ("0", "3")), ("node2", ("5",))),
        leaving=(("node2", ("6",)),),
        speedup=((1, 1.0), (2, 1.9)),
        bounds=(1, 4),
        unreachable=(("node2", 5.0, "it does not answer"),),
        why={"binding": "max", "path": [["", 4.0]]},
        loss=0.25,
        checkpoint_interval=60.0,
        framework=Framework.GANG,
        data_dir="/data",
        code_digest="ab" * 32,
    )
    stored, is_new = store.jobs.add(new)
    assert is_new
    assert stored == replace(new, number=stored.number)
    assert store.jobs.get(new.id) == stored


def test_many_attempts_at_once_are_one_job(store: Store) -> None:
    found: list[tuple[JobRecord, bool]] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(store.jobs.add(job(n, idempotency_key="k"))))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({record.id for record, _ in found}) == 1
    assert sum(is_new for _, is_new in found) == 1


def test_a_job_moves_along_the_table(store: Store) -> None:
    one, _ = store.jobs.add(job())
    store.jobs.move(one.id, State.STARTING, "its turn", 101.0, running_since=101.0, size=2)
    moved = store.jobs.move(one.id, State.FAILED, "exit code 1", 105.0, exit_code=1, size=0)
    assert (moved.state, moved.reason, moved.ended) == (State.FAILED, "exit code 1", 105.0)
    assert [(past.time, past.before, past.after) for past in store.jobs.transitions(one.id)] == [
        (100.0, None, State.QUEUED),
        (101.0, State.QUEUED, State.STARTING),
        (105.0, State.STARTING, State.FAILED),
    ]


def test_an_illegal_move_changes_nothing(store: Store) -> None:
    one, _ = store.jobs.add(job())
    with pytest.raises(IllegalTransitionError, match="queued and cannot become running"):
        store.jobs.move(one.id, State.RUNNING, "no", 101.0, size=3)
    assert store.jobs.get(one.id) == one
    assert len(store.jobs.transitions(one.id)) == 1
