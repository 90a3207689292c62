"""Collectives of one worker; those of several are in tests/system."""

import pytest

import edt_hvd
from edt_hvd.world import world

pytestmark = pytest.mark.usefixtures("alone")


def test_one_worker_has_its_own_value() -> None:
    value = {"anything": [1, None]}
    assert edt_hvd.gather(value) == [value]
    assert edt_hvd.broadcast(value) == value
    edt_hvd.barrier()


@pytest.mark.parametrize("root", [-1, 1])
def test_a_rank_that_there_is_not_is_refused(root: int) -> None:
    with pytest.raises(ValueError, match=f"root={root} is no rank; give one from 0 to 0"):
        edt_hvd.broadcast(1, root)


def test_needs_init(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_world", None)
    for call in (lambda: edt_hvd.gather(1), lambda: edt_hvd.broadcast(1), edt_hvd.barrier):
        with pytest.raises(edt_hvd.NotInitializedError):
            call()
