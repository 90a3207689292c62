"""What scripts do after the loop over a step, and after the training, with several workers."""

import pytest

from harness import ElasticJob
from tiers import full

BEGIN = """
import os, signal, sys
import torch
import edt_hvd

edt_hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(torch.randn(48, 8), 12, 2)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)
"""

PENALIZED = """
@edt_hvd.elastic
def train(state):
    while state.epoch < 3:
        for step in state.loader:
            for inputs in step:
                step.backward(model(inputs).square().mean())
            strength = 1 + edt_hvd.rank()
            (0.1 * strength * model.weight.square().sum()).backward()
            optimizer.step()
            state.commit()
        state.epoch += 1
    if edt_hvd.size() == 3 and edt_hvd.is_coordinator():
        os.kill(os.getpid(), signal.SIGKILL)

train(state)
print("ended with", edt_hvd.size(), "after", state.progress, "weights", model.weight.tolist(), flush=True)
"""


def test_penalties_are_averaged_with_a_warning_and_a_worker_lost_while_others_have_returned_costs_no_step(
    job: ElasticJob,
) -> None:
    script = job.folder / "penalized.py"
    script.write_text(BEGIN + PENALIZED)
    job.allocate(3)
    job.start(script, options=("--max-restarts", "0"))
    assert job.end() == 0, job.stderr
    ended = [line.partition("] ")[2] for line in job.stdout.splitlines() if "ended with 2 after 12" in line]
    assert (len(ended), len(set(ended))) == (2, 1)
    assert "added gradients that differ between the" in job.stdout + job.stderr


UNLIKE = """
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
    script.write_text(BEGIN + UNLIKE)
    job.allocate(3)
    job.start(script, deed)
    assert job.end() == 1
    assert UNLIKE_ENDS[deed] in job.stdout + job.stderr
