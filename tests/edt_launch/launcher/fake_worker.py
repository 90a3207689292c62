"""A worker without torch: speaks to edt-launch by itself, and misbehaves as it is told.

Its argument is the name of a function here.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

WORKER = int(os.environ["EDT_WORKER"])
STUBBORN = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)",
]


class Launcher:
    """The conversation with edt-launch; what it says is handled when it is waited for."""

    def __init__(self):
        host, _, port = os.environ["EDT_COORDINATOR"].rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._lines = self._socket.makefile("rb")
        self.obeys = True
        self.send("hello", token=os.environ["EDT_WORKER_TOKEN"], worker=WORKER, pid=os.getpid())

    def send(self, kind, **content):
        self._socket.sendall(json.dumps({"type": kind, **content}).encode() + b"\n")

    def hear(self):
        """The next message; ends this process if there is none, or if that is what it says."""
        line = self._lines.readline()
        message = json.loads(line) if line else {"type": "end"}
        if message["type"] == "end":
            if self.obeys:
                os._exit(143)
            time.sleep(600)
        return message

    def join(self, progress=0):
        """Come to the rendezvous; the place in the next world, or None if this worker is to leave."""
        self.send("at_rendezvous", progress=progress)
        while (message := self.hear())["type"] not in ("assign", "leave"):
            pass
        if message["type"] == "leave":
            if message["saves"]:
                self.send("checkpointed", step=7)
            return None
        self.send("synced")
        return message

    def until(self, kind):
        while self.hear()["type"] != kind:
            pass


def begin():
    launcher = Launcher()
    return launcher, launcher.join()


def say(text, stream="stdout", end="\n"):
    print(text, file=getattr(sys, stream), end=end, flush=True)


def end(launcher):
    launcher.send("done")
    sys.exit(0)


def until_size(launcher, place, size):
    """Take part in worlds until one has that size."""
    while place is not None and place["size"] != size:
        launcher.until("stop")
        place = launcher.join(progress=1)
    if place is None:
        sys.exit(0)
    return place


def stubborn_child():
    """A process in a session of its own that ignores SIGTERM; returns its process id."""
    process = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    return process.pid


def success():
    launcher, place = begin()
    if place["rank"] == 0:
        launcher.send("progress", step=10, epoch=0, size=2, values={"total_steps": 10})
        say(json.dumps([os.environ.get("HOROVOD_NODE"), os.environ.get("MINE")]))
        os.write(1, b"\xff\n")
        say("hello", end="")
    else:
        say("oh", "stderr")
    end(launcher)


def failure():
    """Rank 1 ends as if it was told to, and rank 0 by a mistake, when it hears of that."""
    launcher, place = begin()
    if place["rank"] == 1:
        say("terminated with the others", "stderr")
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)
    launcher.until("cut")
    for line in range(30):
        say(f"line {line}", "stderr")
    os.kill(os.getpid(), signal.SIGSEGV)


def telling():
    """Sends many messages of its program, and fails."""
    launcher, place = begin()
    if place["rank"] == 0:
        for number in range(2000):
            launcher.send("program_message", text=f"{number} {'x' * 400}")
        sys.exit(3)
    launcher.until("cut")


def shrunk():
    """Waits until the world has two workers."""
    launcher, place = begin()
    if place["rank"] == 0:
        say("ready")
    until_size(launcher, place, 2)
    end(launcher)


def waiting():
    """Says who it is, and trains for ever."""
    launcher, _ = begin()
    say(f"ready {os.getpid()}")
    launcher.until("stop")
    if launcher.join(progress=1) is None:
        sys.exit(0)


def slow_to_start():
    """Never reaches the rendezvous."""
    launcher = Launcher()
    say("ready")
    launcher.until("never")


def stubborn():
    """Ignores SIGTERM and what it is told, as does another process that has left its parent's session."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    launcher, place = begin()
    launcher.obeys = False
    if place["rank"] == 0:
        say(f"ready {stubborn_child()} {os.getpid()}")
    launcher.until("never")


if __name__ == "__main__":
    globals()[sys.argv[-1]]()
