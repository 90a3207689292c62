"""A worker's place; how it changes is shown in tests/system."""

from collections.abc import Callable

import pytest
import torch

import edt_hvd
from edt_hvd import world
from edt_hvd.world import AssignedWorld


@pytest.mark.parametrize(
    "call", [edt_hvd.rank, edt_hvd.size, edt_hvd.local_rank, edt_hvd.local_size, edt_hvd.device]
)
def test_nothing_answers_before_init(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_world", None)
    with pytest.raises(edt_hvd.NotInitializedError, match=r"call edt_hvd\.init\(\) first"):
        call()


@pytest.mark.usefixtures("alone")
def test_one_process_is_a_world_of_one() -> None:
    edt_hvd.init()
    assert (edt_hvd.rank(), edt_hvd.size(), edt_hvd.local_rank(), edt_hvd.local_size()) == (0, 1, 0, 1)
    assert edt_hvd.is_coordinator()
    assert (world.max_size(), world.membership()) == (1, 0)


@pytest.mark.usefixtures("alone")
def test_cores_are_shared_among_those_the_host_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"EDT_COORDINATOR": "127.0.0.1:1", "EDT_TOKEN": "t", "EDT_WORKER": "0", "EDT_MAX_NP": "64"}
    monkeypatch.setattr(world, "_world", AssignedWorld(environ))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(16))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("EDT_LOCAL_NP", "4")
    before = torch.get_num_threads()
    try:
        world._share_cores()
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
