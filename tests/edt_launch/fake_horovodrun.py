"""Stands in for horovodrun: takes its options, writes events and prefixed lines, misbehaves as it is told.

The program that it is given is the name of a function here.
"""

import json
import os
import signal
import subprocess
import sys
import time

OPTIONS = sys.argv[1:-1]
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)",
]
_events = os.fdopen(int(os.environ["EDT_EVENTS_FD"]), "w", buffering=1)


def send(event, **content):
    _events.write(json.dumps({"event": event, "time": time.time(), **content}) + "\n")


def say(worker, text, stream="stdout", end="\n"):
    file = getattr(sys, stream)
    file.write(f"[{worker}]<{stream}>:{text}{end}")
    file.flush()


def begin(size=2):
    first = int(os.environ["EDT_FIRST_WORKER"])
    for worker in range(size):
        send("started", worker=first + worker, host="localhost", slot=worker, device=None, rank=worker)
    ranks = {str(first + worker): size - 1 - worker for worker in range(size)}  # not the serial numbers
    send("world", generation=1, size=size, previous_size=None, ranks=ranks, reason="first world")


def fail(worker, exit_code, name=None):
    place = {"host": "localhost", "slot": worker, "rank": 1 - worker}
    send(
        "failed",
        worker=worker + int(os.environ["EDT_FIRST_WORKER"]),
        **place,
        exit_code=exit_code,
        signal=name,
    )


def stubborn_child():
    """A process in a session of its own that ignores SIGTERM; returns its process id."""
    process = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    return process.pid


def slots():
    with open(os.environ["EDT_ALLOCATION"]) as file:
        return sum(int(line.split(":")[1].split()[0]) for line in file if not line.startswith("#"))


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def success():
    begin()
    say(1, "oh", "stderr")
    print("about itself", file=sys.stderr)
    send("progress", step=10, epoch=0, size=2, values={"total_steps": 10})
    print(json.dumps([OPTIONS, os.environ.get("HOROVOD_RANK"), slots(), os.environ.get("MINE")]), flush=True)
    say(0, "hello", end="")
    send("finished", exit_code=0, reason="the training function has returned")


def failure():
    begin()
    first = int(os.environ["EDT_FIRST_WORKER"])
    say(first + 1, "terminated with the others", "stderr")
    for line in range(30):
        say(first, f"line {line}", "stderr")
    fail(1, 143, "SIGTERM")
    fail(0, 139, "SIGSEGV")
    send("finished", exit_code=1, reason="rank 1 failed")
    sys.exit(1)


def strange():
    begin()
    say(0, "[gloo] connectFullMesh failed", "stderr")
    fail(0, 1)
    send("finished", exit_code=1, reason="rank 1 failed")
    sys.exit(1)


def resize():
    """Follows the allocation until it has four slots."""
    begin()
    say(0, "ready")
    wait_for(lambda: slots() == 4)
    send("world", generation=2, size=4, previous_size=2, ranks={"0": 0}, reason="grown")
    send("resumed", generation=2, **{"from": 2, "to": 4}, pause=0.25, phases={})
    send("finished", exit_code=0, reason="the training function has returned")


def shrunk():
    """Waits until the allocation has two slots."""
    begin(1)
    say(int(os.environ["EDT_FIRST_WORKER"]), "ready")
    wait_for(lambda: slots() == 2)
    send("finished", exit_code=0, reason="the training function has returned")


def where():
    """Says what its environment tells it."""
    begin(1)
    names = ("EDT_FIRST_WORKER", "EDT_CHECKPOINT_DIR", "EDT_FRAMEWORK", "EDT_WMLA_LAUNCHER", "RESULT_DIR")
    told = {name: os.environ.get(name) for name in names}
    say(int(os.environ["EDT_FIRST_WORKER"]), json.dumps([os.getcwd(), told]))
    send("finished", exit_code=0, reason="the training function has returned")


def no_start():
    sys.exit("ModuleNotFoundError: No module named 'horovod'")


def murdered():
    begin()
    say(int(os.environ["EDT_FIRST_WORKER"]), "ready")
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def unlucky():
    """Is killed in training, killed again while a worker starts, and gets on in the third run."""
    is_second = os.environ["EDT_FIRST_WORKER"] == "2"
    if is_second:
        send("started", worker=2, host="localhost", slot=0, device=None, rank=0)
    else:
        begin()
    if is_second or os.environ["EDT_FIRST_WORKER"] == "0":
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    send("finished", exit_code=0, reason="the training function has returned")


def recovering():
    """Loses all of its workers in the first run, and trains on in the second."""
    begin()
    is_first = os.environ["EDT_FIRST_WORKER"] == "0"
    send("progress", step=5 if is_first else 6, epoch=0, size=2, values={})
    if is_first:
        fail(1, 137, "SIGKILL")
    send("finished", exit_code=1 if is_first else 0, reason="rank 0 failed, the last that had the state")
    sys.exit(1 if is_first else 0)


def obedient():
    """Ends its worker and itself when it is told."""
    worker = subprocess.Popen(SLEEP, start_new_session=True)

    def end(*_):
        worker.terminate()
        worker.wait()
        send("left", worker=0)
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    begin()
    say(0, f"ready {worker.pid} {os.getpid()}")
    time.sleep(600)


def leaving():
    """Has its workers leave on SIGUSR1, the state saved."""

    def leave(*_):
        send("checkpointed", step=7)
        send("finished", exit_code=1, reason="the job was told to pause", left=True)
        sys.exit(1)

    signal.signal(signal.SIGUSR1, leave)
    begin()
    say(0, "ready")
    time.sleep(600)


def slow_to_start():
    """Has no workers yet."""
    say(0, "ready")
    time.sleep(600)


def stubborn():
    """Ignores SIGTERM, as do its worker and another that has left its parents and its environment's marks."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begin()
    say(0, f"ready {stubborn_child()} {os.getpid()}")
    time.sleep(600)


def litter():
    """Ends well, and leaves a process behind."""
    begin()
    say(0, f"ready {stubborn_child()}")
    send("finished", exit_code=0, reason="the training function has returned")


def orphaned():
    """Ends when its standard input does, which is when the parent has died."""
    begin()
    say(0, f"ready {os.getpid()}")
    sys.stdin.read()


def bereft():
    """A worker that has lost another one."""
    begin()
    where = "[2026-11-21 22:38:16.891042: E /b/operations.cc:712] [0]: "
    what = "Horovod background loop uncaught exception: "
    say(
        0,
        f"{where}{what}[/b/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:6318",
        "stderr",
    )
    say(0, "ours", "stderr")
    send("finished", exit_code=0, reason="done")


def nonsense():
    begin()
    _events.write("this is no event\n[]\n")
    sys.stdout.buffer.write(b"[0]<stdout>:\xff\n")
    sys.stdout.flush()
    send("finished", exit_code=0, reason="the training function has returned")


if __name__ == "__main__":
    globals()[sys.argv[-1]]()
