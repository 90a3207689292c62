"""A job in which something goes wrong. failing.py HOW OUT

HOW is "chatters" (prints a line of 10 MB and exits with 3), "raise" (rank 1 raises at step 3), "exit"
(rank 1 exits with 7), "import" (fails before training), "stuck" (ignores SIGTERM, and has a lock that
processes may share), "thread" (a thread never ends), "late" (fails after training), "everyone" (all raise at
step 3), "quits" (rank 1 exits with 0 at step 3), "evaluates" (rank 0 never returns from the function, the
others do at step 3), "waits" (for a file, before training) or "none".
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch

import edt_hvd

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

if how == "thread":
    threading.Thread(target=threading.Event().wait).start()

if how == "waits":
    (out / f"waits.{os.getpid()}").touch()
    while not (out / "hurry").exists():
        time.sleep(0.05)

edt_hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader([torch.ones(2)] * 400, 4)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader)


@edt_hvd.elastic
def train(state) -> None:
    for step in state.loader:
        for inputs in step:
            step.backward(model(inputs).sum())
        optimizer.step()
        time.sleep(0.05)
        (out / f"pid.{edt_hvd.rank()}").write_text(str(os.getpid()))
        if step.index >= 3 and (edt_hvd.rank() == 1 or how == "everyone"):
            if how in ("raise", "everyone"):
                raise ValueError("sample 17 is broken")
            if how in ("exit", "quits"):
                os._exit(7 if how == "exit" else 0)
        if how == "evaluates" and step.index == 3:
            if edt_hvd.rank() == 0:
                (out / "evaluates").touch()
                time.sleep(600)
            return
        if how == "late" and step.index == 3:
            return
        state.commit()


train(state)
if how == "late":
    raise OSError("the model could not be saved")
