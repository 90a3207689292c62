"""Collectives of one worker; those of several are in tests/system."""

import threading
from collections.abc import Callable

import numpy as np
import pytest

import edt_hvd
from edt_hvd import collectives
from edt_hvd.world import world
from edt_hvd.world.assigned_world import AssignedWorld

pytestmark = pytest.mark.usefixtures("alone")

ENVIRON = {"EDT_COORDINATOR": "127.0.0.1:1", "EDT_WORKER_TOKEN": "t", "EDT_WORKER": "0", "EDT_MAX_NP": "64"}


def test_one_worker_has_its_own_value() -> None:
    value = {"anything": [1, None]}
    assert edt_hvd.gather(value) == [value]
    assert edt_hvd.broadcast(value) == value
    edt_hvd.barrier()


@pytest.mark.parametrize("name", ["gather", "broadcast"])
def test_what_cannot_be_pickled_is_refused_even_though_it_has_nowhere_to_go(name: str) -> None:
    with pytest.raises(ValueError, match=rf"edt_hvd\.{name}\(\): the value of worker 0, a lock cannot be"):
        getattr(edt_hvd, name)(threading.Lock())


def test_values_that_are_too_large_together_are_refused_on_every_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.zeros(3, dtype=collectives._ROW)
    rows["nbytes"] = 2**30
    monkeypatch.setattr(collectives, "begin", lambda *_, **__: rows)
    with pytest.raises(ValueError, match=f"take {3 * 2**30} bytes, {collectives.MAX_BYTES} are allowed"):
        edt_hvd.gather(1)


@pytest.mark.parametrize("root", [-1, 1])
def test_a_rank_that_there_is_not_is_refused(root: int) -> None:
    with pytest.raises(ValueError, match=f"root={root} is no rank; give one from 0 to 0"):
        edt_hvd.broadcast(1, root)


CALLS: dict[str, Callable[[], object]] = {
    "gather": lambda: edt_hvd.gather(1),
    "broadcast": lambda: edt_hvd.broadcast(1),
    "barrier": edt_hvd.barrier,
    "average": lambda: edt_hvd.average(1.0),
    "Mean.compute": lambda: edt_hvd.Mean().compute(),
}


@pytest.mark.parametrize("call", [*CALLS.values(), edt_hvd.rank, edt_hvd.local_size, edt_hvd.device])
def test_needs_init(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_world", None)
    with pytest.raises(edt_hvd.NotInitializedError, match=r"call edt_hvd\.init\(\) first"):
        call()


@pytest.mark.parametrize("name", CALLS)
def test_refused_before_the_elastic_function_where_workers_may_join(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = AssignedWorld(ENVIRON)
    here.generation = 1  # is a member of a world, which it got by asking for its rank, say
    monkeypatch.setattr(world, "_world", here)
    with pytest.raises(RuntimeError, match=rf"edt_hvd\.{name}\(\) before the elastic function"):
        CALLS[name]()
    here.entered = True
    CALLS["barrier"]()
