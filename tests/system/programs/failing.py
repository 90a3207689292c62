"""A job in which something goes wrong. failing.py HOW OUT

HOW is "chatters" (prints a line of 10 MB and exits with 3), "import" (fails before training), "stuck"
(ignores SIGTERM, has a lock that processes may share, and does not train), "waits" (for a file, before
training), "thread" (a thread never ends), "everyone" (all raise at step 3), "raise" (rank 1 raises there),
"quits" (rank 1 exits there with 0), "averages" (rank 1 alone asks for an average there), "late" (fails after
training) or "endless".
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

how, out = sys.argv[1], Path(sys.argv[2])
if how == "chatters":
    print("x" * 10_000_000, flush=True)
    sys.exit(3)
if how == "import":
    raise RuntimeError("the dataset is not there")
if how == "stuck":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lock = multiprocessing.get_context("spawn").Lock()
    (out / f"lock.{os.getpid()}").write_text(lock._semlock.name)
    (out / f"pid.{os.getpid()}").touch()
    time.sleep(3600)
if how == "thread":
    threading.Thread(target=threading.Event().wait).start()
if how == "waits":
    (out / f"waits.{os.getpid()}").touch()
    while not (out / "hurry").exists():
        time.sleep(0.05)

import torch  # noqa: E402 - some ways to fail need none of it

import edt_hvd  # noqa: E402

edt_hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader([torch.ones(2)] * (400 if how == "waits" else 40_000), 4)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)


def fail(step: int) -> bool:
    """Do what is to go wrong at a step; whether the function is to return."""
    if how == "everyone" or (how == "raise" and edt_hvd.rank() == 1):
        raise ValueError("sample 17 is broken")
    if how == "quits" and edt_hvd.rank() == 1:
        os._exit(0)
    if how == "averages" and edt_hvd.rank() == 1:
        edt_hvd.average(1.0)
    return how == "late"


@edt_hvd.elastic
def train(state) -> None:
    for step in state.loader:
        for inputs in step:
            step.backward(model(inputs).sum())
        optimizer.step()
        time.sleep(0 if how == "waits" else 0.05)
        (out / f"pid.{edt_hvd.rank()}").write_text(str(os.getpid()))
        if step.index == 3 and fail(step.index):
            return
        state.commit()


train(state)
if how == "late":
    raise OSError("the model could not be saved")
