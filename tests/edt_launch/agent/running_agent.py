"""An agent that a test talks to as a launcher does."""

import contextlib
import os
import queue
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid

from edt_launch.agent import protocol
from edt_launch.agent.encoding import Reader, write

COMMAND = (sys.executable, "-P", "-m", "edt_launch.agent")


class RunningAgent:
    """An agent of a job that runs one program; deals with all output at once.

    Args:
        command: what its workers run.
        folder: where they start, and the warm server's log.
        variables: those of the job, in front of this process's own.
        acknowledges: whether output is dealt with.
        code: what the agent's interpreter runs instead of the module.
    """

    def __init__(self, command, folder, variables=None, acknowledges=True, code=None, **setup):
        self.job = uuid.uuid4().hex
        self.environment = {**os.environ, "EDT_JOB": self.job, **(variables or {})}
        self.reports = queue.Queue()
        self.outputs = {}
        self.exits = {}
        self.pids = {}
        self.warm = []
        self.swept = None
        self.renews = True
        self._acknowledges = acknowledges
        ours, theirs = socket.socketpair()
        self._socket = ours
        words = COMMAND if code is None else (sys.executable, "-P", "-c", code)
        with theirs:
            self.process = subprocess.Popen(
                words, stdin=theirs, stdout=theirs, start_new_session=True, env=self.environment
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        setup = {"directory": str(folder), "log": f"{folder}/warm.here.log", **setup}
        self.send(protocol.Setup(tuple(map(str, command)), self.environment, **setup))
        assert isinstance(self.next(), protocol.Hello)

    def send(self, order):
        self._socket.sendall(write(order))

    def start(self, worker=0, **own):
        self.send(protocol.Start(worker, {"EDT_WORKER": str(worker), **own}))

    def kill(self, worker=0):
        self.send(protocol.Kill(worker))

    def next(self):
        """The next report, which is remembered, too."""
        report = self.reports.get(timeout=60)
        match report:
            case protocol.Output(worker, stream, data):
                self.outputs.setdefault((worker, stream), bytearray()).extend(data)
                if self._acknowledges:
                    with contextlib.suppress(OSError):
                        self.send(protocol.WindowUpdate(len(data)))
            case protocol.Started(worker, pid):
                self.pids[worker] = pid
            case protocol.LeaseExpired():
                self.renews = False
            case protocol.Exited(worker, code):
                self.exits[worker] = code
            case protocol.Warm():
                self.warm.append(report)
            case protocol.Swept(count):
                self.swept = count
        return report

    def until(self, condition):
        while not condition():
            self.next()

    def printed(self, worker=0, stream="stdout"):
        return self.outputs.get((worker, stream), b"").decode()

    def line(self, worker=0):
        """The first line that a worker prints, once it is there."""
        self.until(lambda: "\n" in self.printed(worker))
        return self.printed(worker).splitlines()[0]

    def ended(self, worker=0):
        """Its exit code, and what it has printed to standard output and error."""
        self.until(lambda: worker in self.exits)
        return self.exits[worker], self.printed(worker), self.printed(worker, "stderr")

    def run(self, worker=0, **own):
        self.start(worker, **own)
        return self.ended(worker)

    def hang_up(self):
        """Let the launcher be gone, though it still listens."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self):
        """Be gone; the agent follows."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()

    def _read(self):
        reader = Reader(protocol.Report)
        with contextlib.suppress(OSError):
            while data := self._socket.recv(2**16):
                for report in reader.feed(data):
                    if isinstance(report, protocol.Heartbeat) and self.renews:
                        self.send(protocol.Renew(report.sent_at))
                    self.reports.put(report)


def script(folder, text, name="train.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def until(condition):
    while not condition():
        time.sleep(0.01)
