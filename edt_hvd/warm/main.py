"""The warm server's process: it imports what the job needs, makes sure that it may fork, and serves."""

import contextlib
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import setproctitle
import torch

from edt_hvd.initialization import adopt_horovod, refuse_horovod
from edt_hvd.warm import imports, worker
from edt_hvd.warm.imports import Import, ProgramImports
from edt_hvd.warm.random_numbers import Watch
from edt_hvd.warm.server import Server
from edt_hvd.world.activity import private_memory
from edt_messages.forking import Fork, Imported, encode

ALWAYS = (Import("torch._dynamo"), Import("horovod.torch"), Import("edt_hvd"))
"""What elastic training needs: the first optimizer imports `torch._dynamo`."""

BEGIN_ANEW = frozenset({"jemalloc_bg_thd"})
"""Threads that need not end for a fork: jemalloc, of pyarrow, prepares for it and does without them there."""

RUNNER = "edt_hvd.wmla.executor"
"""A module that trains what the script which is its first argument has made."""


def main(started: float, options: int) -> None:
    """Serve, and in a forked worker run the program.

    Args:
        started: when this process began, in seconds of `time.monotonic`.
        options: how many words of the program's command are the interpreter and its options.
    """
    channel = _take_channel()
    setproctitle.setproctitle(f"edt warm server: {' '.join(sys.argv[1:])}")
    names, refusal = _prepare(worker.request_of(sys.argv[1:], options))
    _report(channel, time.monotonic() - started, names, refusal)
    if refusal is not None:
        os._exit(0)
    request, lifeline = Server(channel).serve()
    worker.run(request, lifeline)


def _take_channel() -> socket.socket:
    """The channel to the agent, which this process has for its standard input."""
    channel = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return channel


def _prepare(request: Fork) -> tuple[list[str], str | None]:
    """Import what a program needs; the names, and why nothing can be forked (None if it can)."""
    found = _find(request)
    if found.sets_environment is not None:
        reason = "the program sets environment variables before it imports"
        return [], f"{reason} ({found.sets_environment})"
    watch = Watch()
    if (prepare := worker.preparing_module()) is not None:
        prepare.install()
    imported = import_all([*ALWAYS, *found.installed])
    seeded = f"an import has seeded {' and '.join(watch.seeded)}" if watch.seeded else None
    if found.mentions_us:  # edt-launch assigns worlds to the workers, this process knows of none
        adopt_horovod(is_assigned=True)
    else:  # importing it ahead must change nothing for the program
        refuse_horovod()
    sys.stdout.flush()  # what imports have printed is not every worker's to print
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # a collection in a worker would write to every object, and so copy it
    return imported, _shadowed(found) or seeded or obstacle()


def _find(request: Fork) -> ProgramImports:
    path = [worker.folder_of(request), *sys.path]
    if request.script is not None:
        return imports.find(Path(request.directory, request.script), "", path)
    assert request.module is not None
    if request.module == RUNNER and request.arguments:
        return _find_in_script(Path(request.directory, request.arguments[0]))
    package = f"{request.module}.__main__"
    for name in (package, request.module):
        files = imports.own_files(Import(name), [Path(worker.folder_of(request))])
        if name in files:
            return imports.find(files[name], name.rpartition(".")[0], path)
    return ProgramImports((), {}, None)


def _find_in_script(script: Path) -> ProgramImports:
    """What the script imports, and the package of the `RUNNER`, which itself runs as `__main__`."""
    found = imports.find(script, "", [str(script.resolve().parent), *sys.path])
    package = Import(RUNNER.rpartition(".")[0])
    return replace(found, installed=(package, *found.installed), mentions_us=True)


def import_all(wanted: Iterable[Import]) -> list[str]:
    """Import what can be imported; the names of the packages, less the standard library's.

    What cannot be is left to the program, which will say so, or knows what to do without.
    """
    names: dict[str, None] = {}
    for each in wanted:
        try:
            __import__(each.module, fromlist=each.names)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - other people's modules raise whatever they like
            print(f"not imported: {each.module}: {error!r}", flush=True)
        else:
            names[each.module.partition(".")[0]] = None
    return [name for name in names if name not in sys.stdlib_module_names]


def _shadowed(found: ProgramImports) -> str | None:
    """Why the program would get another module than its own."""
    for name, file in found.own.items():
        there = getattr(sys.modules.get(name), "__file__", None)
        if name in sys.modules and (there is None or Path(there).resolve() != file.resolve()):
            return f"{file} has the name of a module that is imported already"
    return None


def obstacle() -> str | None:
    """Why no worker can be forked from this process: it would miss threads or a device's driver; or None."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return "an import has initialized CUDA"
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    if others:
        return f"an import has started the thread {others[0]!r}"
    pid = os.fork()  # libraries that know of forks end their threads for it
    if pid == 0:
        os._exit(torch.cuda._is_in_bad_fork())
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        return "an import has asked CUDA for its devices"
    left = [name for name in _other_threads() if name not in BEGIN_ANEW]
    return f"an import has started {len(left)} threads that do not end for a fork" if left else None


def _other_threads() -> list[str]:
    """Names of the process's threads, those that are not Python's too, but for the present one."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            if task.name != str(threading.get_native_id()):
                names.append((task / "comm").read_text().strip())
    return names


def _report(channel: socket.socket, seconds: float, names: list[str], refusal: str | None) -> None:
    report = Imported(seconds, tuple(names), private_memory(), refusal)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the server notices its end
        channel.sendall(encode(report))
