"""What scripts do with gradients after the loop over a step, with several workers."""

import pytest

from harness import ElasticJob
from tiers import full

PENALIZED = """
import torch
import edt_hvd

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(torch.utils.data.TensorDataset(torch.randn(96, 8)), 12, 2)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)

@edt_hvd.elastic
def train(state):
    for step in state.loader:
        for (inputs,) in step:
            step.backward(model(inputs).square().mean())
        strength = 1 + edt_hvd.rank()
        (0.1 * strength * model.weight.square().sum()).backward()
        optimizer.step()
        state.commit()

train(state)
bits = model.weight.detach().view(torch.uint8).flatten().tolist()
print("weights", *bits, flush=True)
"""


def test_workers_penalties_are_averaged_with_a_warning(job: ElasticJob) -> None:
    script = job.folder / "penalized.py"
    script.write_text(PENALIZED)
    job.allocate(3)
    job.start(script)
    assert job.end() == 0, job.stderr
    found = [line.partition("weights ")[2] for line in job.stdout.splitlines() if "weights" in line]
    assert (len(found), len(set(found))) == (3, 1)
    assert "added gradients that differ between the" in job.stdout + job.stderr


UNLIKE = """
import sys
import torch
import edt_hvd

edt_hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(torch.randn(96, 8), 12, 2)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)

@edt_hvd.elastic
def train(state):
    for step in state.loader:
        for inputs in step:
            step.backward(model(inputs).square().mean())
        if edt_hvd.is_coordinator() or sys.argv[1] == "return":
            optimizer.step()
        state.commit()
        if edt_hvd.is_coordinator() and step.index == 2:
            return

train(state)
"""


UNLIKE_ENDS = {
    "step": "calls of optimizer.step() since the last pass over a step: 1 on rank 0, 0 on rank 1, 0 on",
    "return": "EarlyReturnError: train() has not ended alike on all workers: on rank 0 it had returned after "
    "3 commits; on rank 1, 2 it was still training after 3 commits. Decide",
}


@pytest.mark.parametrize("deed", [full("step"), "return"])
def test_what_one_worker_does_alone_ends_all(job: ElasticJob, deed: str) -> None:
    script = job.folder / "unlike.py"
    script.write_text(UNLIKE)
    job.allocate(3)
    job.start(script, deed)
    assert job.end() == 1
    assert UNLIKE_ENDS[deed] in job.stdout + job.stderr


TAIL = """
import os
import signal
import sys
import torch
import edt_hvd

edt_hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(torch.randn(24, 8), 12, 2)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)

@edt_hvd.elastic
def train(state):
    while state.epoch < 3:
        for step in state.loader:
            for inputs in step:
                step.backward(model(inputs).square().mean())
            optimizer.step()
            state.commit()
        state.epoch += 1
    if edt_hvd.size() == 3 and edt_hvd.is_coordinator():
        os.kill(os.getpid(), signal.SIGKILL)

train(state)
print("ended with", edt_hvd.size(), "after", state.progress, flush=True)
"""


def test_a_worker_that_is_lost_while_others_have_returned_costs_no_step(job: ElasticJob) -> None:
    script = job.folder / "tail.py"
    script.write_text(TAIL)
    job.allocate(3)
    job.start(script, options=("--max-restarts", "0"))
    assert job.end() == 0
    assert job.stdout.count("ended with 2 after 6") == 2
