"""What horovodrun starts for a worker: ``python -P -m edt_launch.agent.attach -- python train.py ...``.

It has the host's warm server fork the worker and then stands for it among Horovod's processes: it passes
signals to the worker, and ends with the worker's exit code or signal. Without a server it becomes the program
itself.

The server listens on an abstract Unix socket, named after the job, that vanishes with it. Whoever can bind
the name starts it, so there is one. Everything is in JSON, one message a line after the request::

    request   4 bytes of length, then script module arguments command directory environment umask
    answer    ready; or refused, with the reason
    one byte  with the descriptors of standard input, output, error and the lifeline
    answer    pid, then status once it has ended (as of waitpid)

The descriptors come second because a server that is stopped would keep open what has been sent to it.

The *lifeline* is a pair of sockets of this process and the worker. The worker begins when one byte comes
through it, so that no signal is lost. From then on it has the kernel kill its process group when this end
closes, whoever ends this process and however. At its end it says with which code, for the case that the
server, its parent, has gone or is stopped.
"""

import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from edt_launch.agent import forkable
from edt_launch.agent.forkable import Program

# Horovod starts one of these for each worker: standard library only.

LISTENER = 3
"""Descriptor at which the server finds its listening socket."""

BACKLOG = 512
"""Workers that may wait until the server has imported everything."""

ATTEMPTS = 2
"""Servers that are tried: one may be ending at the very moment that it is asked."""

REQUEST_TIMEOUT = 120.0
"""Seconds without an answer after which a server counts as stopped; the first one comes after its imports."""

STATUS_TIMEOUT = 5.0
"""Seconds after a worker's end that its server has to tell how it ended."""

CONNECT_ATTEMPTS = 200
RETRY = 0.01
"""Seconds until a name that somebody has bound, but does not listen on yet, is tried again."""

PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGWINCH,
)
"""Signals that the worker gets when this process does."""

# The folder of the program comes to the front of the path in the worker, nothing in the server.
_SERVER = (
    "import sys, time; started = time.monotonic(); sys.path[:] = sys.path[not sys.flags.safe_path :]; "
    "from edt_hvd.warm.main import main; main(started)"
)


@dataclass(frozen=True)
class Worker:
    """A worker that the server has forked."""

    pid: int
    server: socket.socket
    lifeline: socket.socket


def main() -> NoReturn:
    """Run the command after ``--``, forked from the warm server if that can be."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = sys.argv[sys.argv.index("--") + 1 :]
    program = forkable.parse(words)
    job = os.environ.get("EDT_JOB")
    worker = None
    # A script that is not there is the interpreter's to report.
    if program is not None and job is not None and (program.module or os.path.isfile(program.script or "")):
        worker = _ask(address(job), program, words)
    if worker is None:
        _become(words)
    _stand_for(worker)


def address(job: str) -> str:
    """The name of the socket on which a job's warm server listens."""
    return f"\0edt-warm-{job}"


def _become(words: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would hand that on
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"edt-launch: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


# Asking for a worker.


def _ask(name: str, program: Program, words: Sequence[str]) -> Worker | None:
    """Have a worker forked; None if there is no server, or it does not want to."""
    for _ in range(ATTEMPTS):
        server = _connect(name, program, words)
        if server is None:
            return None
        lifeline, workers_end = socket.socketpair()
        with workers_end:
            answer = _request(server, workers_end, program, words)
        if "pid" in answer:
            return Worker(int(answer["pid"]), server, lifeline)
        server.close()
        lifeline.close()  # should the worker have been forked all the same, this ends it
        if "refused" in answer:
            return None
        if "silent" in answer:
            print(f"edt-launch: {answer['silent']}; this worker starts without it", file=sys.stderr)
            return None
    return None


def _connect(name: str, program: Program, words: Sequence[str]) -> socket.socket | None:
    """Connect to the server, and start it if there is none; None if it is not ours or never listens."""
    for _ in range(CONNECT_ATTEMPTS):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(name)
        except ConnectionRefusedError:
            connection.close()
            if not _start_server(name, program, words):
                time.sleep(RETRY)
            continue
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", credentials)[1] == os.getuid():
            return connection
        connection.close()
        return None
    return None


def _request(
    server: socket.socket, lifeline: socket.socket, program: Program, words: Sequence[str]
) -> Mapping[str, Any]:
    """Ask for a worker; the answer, empty if the server has gone, `silent` and why if none comes."""
    umask = os.umask(0o077)
    os.umask(umask)
    content = {
        "script": program.script,
        "module": program.module,
        "arguments": program.arguments,
        "command": words,
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "umask": umask,
    }
    body = json.dumps(content).encode()
    server.settimeout(REQUEST_TIMEOUT)
    try:
        server.sendall(struct.pack("!I", len(body)) + body)
        answer = _receive(server)
        if "ready" in answer:
            socket.send_fds(server, [b"!"], [0, 1, 2, lifeline.fileno()])
            answer = _receive(server)
    except (BrokenPipeError, ConnectionResetError):
        return {}
    except TimeoutError:
        return {"silent": f"the warm server has not answered for {REQUEST_TIMEOUT:g} s"}
    server.settimeout(None)
    return answer


def _receive(server: socket.socket) -> Mapping[str, Any]:
    """The server's next message, empty if it has gone. Byte by byte: they are short, and few."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = server.recv(1)
        except ConnectionResetError:
            return {}
        if not byte:
            return {}
        line += byte
    return dict(json.loads(line))


# Starting the server.


def _start_server(name: str, program: Program, words: Sequence[str]) -> bool:
    """Bind the name and start the server; False if somebody else has bound it.

    The server is nobody's descendant: Horovod ends whole trees of processes.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(name)
        except OSError:
            return False
        listener.listen(BACKLOG)
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                if os.fork() == 0:
                    _become_server(listener, program, words)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    return True


def _become_server(listener: socket.socket, program: Program, words: Sequence[str]) -> NoReturn:
    log, nothing = _open_log(), os.open(os.devnull, os.O_RDWR)
    descriptors = (nothing, log, log, listener.fileno())
    copies = [os.dup(descriptor) for descriptor in descriptors]
    for number, copy in enumerate(copies):
        os.dup2(copy, number)
    os.closerange(LISTENER + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    # What is known by EDT_WORKER is one worker alone. SPT_NOENV: the workers show this environment, and they
    # have to keep it when they change their titles. The program's words make room for those.
    environment = {k: v for k, v in os.environ.items() if k != "EDT_WORKER"} | {"SPT_NOENV": "1"}
    os.execvpe(words[0], [*program.interpreter, "-c", _SERVER, *words], environment)


def _open_log() -> int:
    """The server's log in the job's folder, or nothing where that is not."""
    folder, host = os.environ.get("EDT_LOGS"), os.environ.get("HOROVOD_HOSTNAME", "here")
    if folder is not None:
        try:
            return os.open(f"{folder}/warm.{host}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError:  # another host, which does not see the folder
            pass
    return os.open(os.devnull, os.O_WRONLY)


# Standing for the worker.


def _stand_for(worker: Worker) -> NoReturn:
    """Pass signals on until the worker has ended, then end like it."""

    def pass_on(number: int, _: object) -> None:
        try:
            os.kill(worker.pid, number)
        except ProcessLookupError:  # it has just ended
            return

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    worker.lifeline.send(b"!")
    code = _exit_code(worker)
    if code < 0:
        _die_by(signal.Signals(-code))
    os._exit(code)


def _exit_code(worker: Worker) -> int:
    """Wait for the worker's end; its exit code, negative for a signal.

    The server tells it, or, should that have gone or be stopped, the worker itself on its lifeline.
    """
    waiting, said = [worker.server, worker.lifeline], b""
    while waiting:
        timeout = None if worker.lifeline in waiting else STATUS_TIMEOUT
        ready, _, _ = select.select(waiting, [], [], timeout)
        if worker.server in ready:
            if ended := _receive(worker.server):
                return os.waitstatus_to_exitcode(ended["status"])
            waiting.remove(worker.server)
        if worker.lifeline in ready:
            data = worker.lifeline.recv(64)
            said += data
            if not data:
                waiting.remove(worker.lifeline)
        if not ready:
            break
    if said:
        return int(said.split()[-1])
    where = "its warm server, which knows how, is lost or stopped"
    print(f"edt-launch: this worker was killed; {where}", file=sys.stderr)
    return -signal.SIGKILL


def _die_by(number: signal.Signals) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has left a core file, if anybody wants one
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
