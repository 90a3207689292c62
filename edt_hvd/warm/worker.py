"""Turning a fork of the warm server into a worker, as if the program had just been started."""

import contextlib
import fcntl
import importlib
import io
import os
import runpy
import select
import signal
import sys
import types
from collections.abc import Collection
from typing import Any

import setproctitle

from edt_hvd.warm import random_numbers
from edt_messages.forking import Fork

PREPARE = "EDT_PREPARE"
"""Names the module that prepares workers, if there is one."""

_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}

_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)  # Linux's number; Python's module has no name for it


def request_of(command: list[str], options: int) -> Fork:
    """What this process would be if it was started by the command, of which so many words are options."""
    first, *rest = command[options:]
    script, module = (None, rest.pop(0)) if first == "-m" else (first, None)
    return Fork(script, module, tuple(rest), tuple(command), os.getcwd(), dict(os.environ), 0)


def folder_of(request: Fork) -> str:
    """The first entry of `sys.path` of the program."""
    if request.script is None:
        return request.directory
    return os.path.dirname(os.path.realpath(os.path.join(request.directory, request.script)))


def become(request: Fork, standard: list[int], lifeline: int) -> None:
    """Take over what the starter of the program has given.

    Args:
        request: the worker that is wanted.
        standard: descriptors of standard input, output and error.
        lifeline: descriptor of a socket; its other end is held by the agent. It stays open as long as the
            worker lives.
    """
    os.setsid()
    if request.ignored is not None:
        _ignore(request.ignored)
    _kill_group_when_peer_closes(lifeline)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.umask(request.umask)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    random_numbers.reseed()
    setproctitle.setproctitle(" ".join(request.command))


def _ignore(numbers: Collection[int]) -> None:
    """Ignore these signals and no others, whatever the server was started with."""
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if number in numbers:
            signal.signal(number, signal.SIG_IGN)
        elif signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _kill_group_when_peer_closes(lifeline: int) -> None:
    """Wait for the word to begin; have the kernel kill this process group when the other end is closed."""
    if not os.read(lifeline, 1):
        os._exit(1)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, 0)
    if poll.poll(0):  # closed before the kernel knew
        os._exit(1)


def run(request: Fork, lifeline: int) -> None:
    """Run the program as `__main__`; returns or raises as it does.

    What is left to do then is the interpreter's: it prints, joins threads, calls what is registered for the
    exit, and ends with the program's code.
    """
    code = 1
    try:
        _execute(request)
        code = 0
    except SystemExit as ending:
        code = _exit_code(ending)
        raise
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
        _hide_our_frames()
        raise
    except BaseException:
        _hide_our_frames()
        raise
    finally:
        with contextlib.suppress(OSError):  # a program may close what it does not know
            os.write(lifeline, f"{code}\n".encode())


def preparing_module() -> Any:
    """The module that prepares workers for their program, by `install` here and `begin` in each; or None."""
    name = os.environ.get(PREPARE)
    return None if name is None else importlib.import_module(name)


def _execute(request: Fork) -> None:
    if (prepare := preparing_module()) is not None:
        del os.environ[PREPARE]  # processes of the program are not workers
        prepare.begin()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    sys.modules["__main__"] = main
    if "__mp_main__" in sys.modules:  # multiprocessing's other name for it, for what its children send back
        sys.modules["__mp_main__"] = main
    importlib.invalidate_caches()
    if not sys.flags.safe_path:
        sys.path.insert(0, folder_of(request))
    sys.orig_argv = list(request.command)
    if request.module is not None:
        sys.argv = ["-m", *request.arguments]
        runpy._run_module_as_main(request.module)  # type: ignore[attr-defined]  # as the interpreter does
        return
    assert request.script is not None
    sys.argv = [request.script, *request.arguments]
    path = os.path.join(request.directory, request.script)
    main.__file__ = path
    main.__dict__.update(__cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", path))
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)


def _exit_code(ending: SystemExit) -> int:
    if ending.code is None:
        return 0
    return ending.code & 0xFF if isinstance(ending.code, int) else 1


def _hide_our_frames() -> None:
    """Whatever shows the exception that is under way shows the program's part of it alone."""
    show = sys.excepthook

    def show_programs_part(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        ours = {_execute.__code__, run.__code__}
        last = None
        at = trace
        while at is not None:
            if at.tb_frame.f_code in ours:
                last = at
            at = at.tb_next
        rest = last.tb_next if last is not None else trace
        show(kind, error.with_traceback(rest), rest)

    sys.excepthook = show_programs_part
