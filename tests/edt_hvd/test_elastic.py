"""What the elastic function's wrapper decides; what it does is in tests/system."""

import pytest
import torch

import edt_hvd
from edt_hvd.elastic import SAME_FAILURES, _Failures
from edt_hvd.reduction import participants


def test_the_same_failure_again_and_again_is_a_mistake() -> None:
    failures = _Failures()
    assert [failures.repeated(7, 2) for _ in range(SAME_FAILURES)] == [False] * (SAME_FAILURES - 1) + [True]


def test_lost_workers_and_progress_are_no_mistake() -> None:
    failures = _Failures()
    assert not any(failures.repeated(7, size) for size in (5, 4, 3, 2, 1))
    assert not any(failures.repeated(progress, 2) for progress in range(10))
    assert not any(failures.repeated(None, 2) for _ in range(10)), "a state of Horovod's tells no progress"


@pytest.mark.usefixtures("alone")
def test_garbage_is_collected_before_the_function_is_called_not_in_its_first_step() -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    state = edt_hvd.TorchState(model=model, optimizer=optimizer)
    assert participants._may_have_stale

    @edt_hvd.elastic
    def train(state: edt_hvd.TorchState) -> bool:
        return participants._may_have_stale

    assert not train(state)
