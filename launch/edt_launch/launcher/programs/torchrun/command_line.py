"""Reading a command line of `torchrun`."""

import os
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from edt_launch.core.command_line import filled
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.programs.torchrun.arguments import (
    LAST_CALL,
    Arguments,
    Meeting,
    ResizeAt,
    Resizing,
    Streams,
)
from edt_launch.launcher.programs.torchrun.options import NUMA_BINDINGS, option_parser, print_completion
from edt_launch.launcher.transports.choice import option_groups

UNNEEDED = ("rdzv_backend", "rdzv_endpoint", "rdzv_conf")
"""Options about how agents find one another: edt-launch connects all workers."""

IGNORED = ("monitor_interval", "start_method", "event_log_handler", "logs_specs", "signals_to_handle")
"""Options about parts of torchrun that do not take part."""


def parse(
    words: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    *,
    is_legacy: bool = False,
    count_gpus: Callable[[], int] | None = None,
) -> tuple[RunOptions, Arguments]:
    """Read a command line of torchrun.

    Args:
        words: it, without `torchrun`.
        environment: has options, too, as `PET_` and their name.
        is_legacy: whether it is one of `torch.distributed.launch`, which passes the local rank on.
        count_gpus: how many GPUs this machine has.

    Raises:
        UsageError: an option is unknown or makes no sense.
    """
    parser, own = option_parser(environment, is_legacy)
    given = parser.parse_args(list(words))
    if given.print_completion is not None:
        print_completion(parser, given.print_completion)
    own_options = {option.field.name: getattr(given, option.field.name) for option in own}
    groups: tuple[object, ...] = tuple(filled(group, vars(given)) for group in option_groups())
    run_options = RunOptions(**own_options, max_restarts=None, groups=groups)
    return run_options, _arguments(given, environment, count_gpus or _gpus)


def _arguments(given: Any, environment: Mapping[str, str], gpus: Callable[[], int]) -> Arguments:
    low, high = _nodes(given.nnodes)
    if given.no_python and given.module:
        raise UsageError("--no-python and --module exclude one another: give one of them")
    if given.max_restarts < 0:
        raise UsageError(f"--max-restarts {given.max_restarts}: give 0 or more")
    passes_local_rank = not given.use_env
    if passes_local_rank and given.no_python:
        raise UsageError("--no-python needs --use-env, too: a program gets no --local-rank otherwise")
    template = given.log_line_prefix_template or environment.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")
    timeout = given.shutdown_timeout
    if timeout is None:
        timeout = _number(
            environment.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
        )
    return Arguments(
        command=_command(given, environment),
        min_nodes=low,
        max_nodes=high,
        nproc=_workers(given.nproc_per_node, gpus),
        run_id=given.rdzv_id or (str(uuid.uuid4()) if given.standalone or high == 1 else "none"),
        role=given.role,
        max_restarts=given.max_restarts,
        log_dir=None if given.log_dir is None else _log_dir(Path(given.log_dir)),
        redirects=_streams("--redirects", given.redirects),
        tee=_streams("--tee", given.tee),
        local_ranks=_ranks(given.local_ranks_filter),
        stdout_filters=_list(given.duplicate_stdout_filters),
        stderr_filters=_list(given.duplicate_stderr_filters),
        prefix=template or None,
        master_addr=given.master_addr or given.local_addr,
        master_port=given.master_port or 0,
        virtual_local_rank=given.virtual_local_rank,
        numa_binding=_numa_binding(given.numa_binding),
        shutdown_timeout=timeout,
        passes_local_rank=passes_local_rank,
        resizing=_resizing(given.resize_at),
        grace=given.grace,
        meeting=_meeting(given),
        last_call=_last_call(given.rdzv_conf),
        node_rank=None if given.node_rank is None else _node_rank(given.node_rank),
        notes=_notes(given),
    )


def _nodes(text: str) -> tuple[int, int]:
    try:
        numbers = [int(part) for part in text.split(":")]
        low, high = (numbers[0], numbers[0]) if len(numbers) == 1 else numbers
    except ValueError:
        raise UsageError(f"--nnodes {text}: give a number, or MIN:MAX") from None
    if not 0 < low <= high:
        raise UsageError(f"--nnodes {text}: MIN has to be at least 1, and MAX at least MIN")
    return low, high


def _meeting(given: Any) -> Meeting | None:
    """Where all nodes meet. An etcd server is no such place, nor is a port that is still to be chosen."""
    if given.standalone:
        return None
    if given.rdzv_endpoint is not None and given.rdzv_backend in (None, "c10d", "static"):
        host = re.sub(r":\d*$", "", given.rdzv_endpoint)
        port = given.rdzv_endpoint[len(host) + 1 :]
        return Meeting(host.strip("[]"), port) if host and port != "0" else None
    return None if given.master_addr is None else Meeting(given.master_addr, str(given.master_port or ""))


def _last_call(rdzv_conf: str | None) -> float:
    """That of the rendezvous, whose options are NAME=VALUE with commas between them."""
    pairs = (word.partition("=") for word in (rdzv_conf or "").strip("'\"").split(","))
    found = [value for name, _, value in pairs if name.strip() == "last_call_timeout"]
    return _number(found[-1].strip(), "--rdzv-conf last_call_timeout") if found else LAST_CALL


def _node_rank(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--node-rank {text}: give a number from 0")
    return int(text)


def _workers(text: str, count_gpus: Callable[[], int]) -> int:
    if re.fullmatch(r"\d+", text) and int(text) > 0:
        return int(text)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    match text:
        case "cpu":
            return cores
        case "auto":
            return count_gpus() or cores
        case "gpu" | "cuda":
            if (gpus := count_gpus()) == 0:
                raise UsageError(f"--nproc-per-node {text}: this machine has no GPU; give a number, or cpu")
            return gpus
    raise UsageError(f"--nproc-per-node {text}: give a number, auto, gpu or cpu")


def _gpus() -> int:
    from edt_launch.cluster.hosts import HostOptions
    from edt_launch.cluster.nvidia import Nvidia

    found = Nvidia.detect(HostOptions(os.environ))
    return 0 if found is None else sum(host.slots for host in found.hosts())


def _streams(name: str, text: str) -> Streams:
    if re.fullmatch(r"[0-3]", text):
        return Streams(int(text))
    if re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", text):
        return Streams(
            0, tuple((int(rank), int(value)) for rank, value in (p.split(":") for p in text.split(",")))
        )
    raise UsageError(f"{name} {text}: give 0, 1, 2 or 3, or LOCAL_RANK:NUMBER,...")


def _ranks(text: str) -> frozenset[int]:
    try:
        return frozenset(int(part) for part in text.split(",") if text)
    except ValueError:
        raise UsageError(f"--local-ranks-filter {text}: give numbers with commas between them") from None


def _list(text: str) -> tuple[str, ...]:
    """Words with commas between them; a comma of a word is given twice."""
    items = text.replace(",,", "\0").split(",")
    return tuple(item.replace("\0", ",") for item in items if item)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r:.40}: give a number of seconds") from None


def _log_dir(path: Path) -> Path:
    if path.is_file():
        raise UsageError(f"--log-dir {path} is a file: name a folder, or {os.devnull} for no logs")
    return path


def _numa_binding(text: str | None) -> str | None:
    """Not judged by the parser where a variable has it."""
    if text is not None and text not in NUMA_BINDINGS:
        raise UsageError(f"--numa-binding {text}: give one of {', '.join(NUMA_BINDINGS)}")
    return text


def _resizing(text: str) -> Resizing:
    at, _, count = text.partition(":")
    if at == ResizeAt.EPOCH and re.fullmatch(r"\d*", count) and count != "0":
        return Resizing(ResizeAt.EPOCH, int(count or 1))
    if text in (ResizeAt.CHECKPOINT, ResizeAt.NOW):
        return Resizing(ResizeAt(text))
    raise UsageError(f"--resize-at {text}: give checkpoint, now, or epoch:N")


def _command(given: Any, environment: Mapping[str, str]) -> tuple[str, ...]:
    program = (given.training_script, *given.training_script_args)
    if given.no_python and not given.run_path:
        return program
    python = environment.get("PYTHON_EXEC", sys.executable)
    return (python, "-u", *(("-m",) if given.module and not given.run_path else ()), *program)


def _notes(given: Any) -> tuple[str, ...]:
    unneeded = [_spelled(name) for name in UNNEEDED if getattr(given, name) is not None]
    notes = []
    if unneeded:
        notes.append(f"{' and '.join(unneeded)}: no service is needed, edt-launch connects all workers")
    if given.logs_specs is not None:
        found = entry_points(group="torchrun.logs_specs", name=given.logs_specs)
        if not found:
            raise UsageError(
                f"--logs-specs {given.logs_specs}: no entry point torchrun.logs_specs has that name"
            )
    ignored = [_spelled(name) for name in IGNORED if getattr(given, name) is not None]
    if ignored:
        notes.append(f"{' and '.join(ignored)}: without effect here")
    return tuple(notes)


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"
