"""The command line of `torchrun`, with the options of `edt-launch` among them.

Options, spellings, variables and defaults are those of `torch.distributed.run`, which is not imported here.
"""

import argparse
import os
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from edt_launch.core.command_line import filled, options
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.choice import option_groups

PREFIX = "[${role_name}${local_rank}]:"
"""What stands before the lines of `--tee`."""

UNNEEDED = ("rdzv_backend", "rdzv_endpoint", "rdzv_conf")
"""Options about how agents find one another: edt-launch connects all workers."""

IGNORED = ("monitor_interval", "start_method", "event_log_handler", "logs_specs", "signals_to_handle")
"""Options about parts of torchrun that do not take part."""

NUMA_BINDINGS = ("node", "socket", "exclusive", "core-complex")

LAST_CALL = 5.0
"""Seconds from the least number of nodes to the start, for nodes that are started at the same time."""

_SHARED = ("grace", "max_restarts")
"""Options of edt-launch whose names are other options here, or the same ones."""


class ResizeAt(StrEnum):
    """When a world may be replaced by a larger or smaller one."""

    CHECKPOINT = "checkpoint"
    NOW = "now"
    EPOCH = "epoch"


@dataclass(frozen=True)
class Resizing:
    """When a world is replaced: at a checkpoint, now, or where every `epochs`-th epoch begins."""

    at: ResizeAt = ResizeAt.CHECKPOINT
    epochs: int = 1

    def __str__(self) -> str:
        return f"{self.at}:{self.epochs}" if self.at is ResizeAt.EPOCH else str(self.at)


@dataclass(frozen=True)
class Streams:
    """Which streams of which local ranks are meant: 1 standard output, 2 standard error, 3 both."""

    default: int = 0
    by_rank: tuple[tuple[int, int], ...] = ()

    def has(self, local_rank: int, stream: str) -> bool:
        """Whether a stream, "stdout" or "stderr", of a local rank is meant."""
        return bool(dict(self.by_rank).get(local_rank, self.default) & {"stdout": 1, "stderr": 2}[stream])

    @property
    def is_any(self) -> bool:
        """Whether any is."""
        return bool(self.default) or any(value for _, value in self.by_rank)


@dataclass(frozen=True)
class Meeting:
    """Where the nodes of a job meet, on each of which a user starts the same command."""

    host: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What a user has asked of torchrun."""

    command: tuple[str, ...] = ()
    min_nodes: int = 1
    max_nodes: int = 1
    nproc: int = 1
    run_id: str = "none"
    role: str = "default"
    max_restarts: int = 0
    log_dir: Path | None = None
    redirects: Streams = Streams()
    tee: Streams = Streams()
    local_ranks: frozenset[int] = frozenset()
    """Local ranks whose output is shown; all if there are none."""
    stdout_filters: tuple[str, ...] = ()
    stderr_filters: tuple[str, ...] = ()
    prefix: str | None = None
    master_addr: str | None = None
    """MASTER_ADDR; None for this machine's address."""
    master_port: int = 0
    """MASTER_PORT of the first world; 0 for a free one, as in all later ones."""
    virtual_local_rank: bool = False
    numa_binding: str | None = None
    shutdown_timeout: float = 30.0
    passes_local_rank: bool = False
    """Whether each worker gets `--local-rank=N`, as with `torch.distributed.launch`."""
    resizing: Resizing = Resizing()
    grace: float = 120.0
    meeting: Meeting | None = None
    """The rendezvous, or --master-addr."""
    last_call: float = LAST_CALL
    """Seconds that the first node waits for more than the least number of nodes, before it starts the job."""
    node_rank: int | None = None
    notes: tuple[str, ...] = ()
    """What to tell the user of options that change nothing."""


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
    parser, own = _parser(environment, is_legacy)
    given = parser.parse_args(list(words))
    if given.print_completion is not None:
        _print_completion(parser, given.print_completion)
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


class _Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        """As `edt` shows the help of all commands."""
        return super().format_help().replace("usage:", "Usage:", 1)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (edt torchrun --help lists the options)")


def _parser(environment: Mapping[str, str], is_legacy: bool) -> tuple[argparse.ArgumentParser, list[Any]]:
    parser = _Parser(
        prog="edt torchrun",
        usage="edt torchrun [OPTIONS] PROGRAM [ARGS]",
        description="Run a program written for torchrun, on workers that may change while it runs.",
        epilog="Every option of torchrun may be given in both spellings, and as PET_NAME in the environment.",
    )
    group = parser.add_argument_group("options of torchrun")

    def option(*names: str, default: Any = None, help: str, **more: Any) -> None:  # noqa: A002 - argparse's
        long = names[-1]
        name = long[2:].replace("-", "_")
        more.setdefault("metavar", None if "choices" in more else name.rpartition("_")[2].upper())
        default = environment.get(f"PET_{name.upper()}", default)
        group.add_argument(*names, dest=name, default=default, help=help, **more)
        spell_otherwise(long, dest=name, **more)

    def flag(*names: str, help: str) -> None:  # noqa: A002 - argparse's
        long = names[-1]
        name = long[2:].replace("-", "_")
        is_set = _is_set(environment, f"PET_{name.upper()}")
        group.add_argument(*names, dest=name, action="store_true", default=is_set, help=help)
        spell_otherwise(long, dest=name, action="store_true")

    def spell_otherwise(long: str, **more: Any) -> None:
        other = "--" + long[2:].replace("-", "_")
        if other != long:
            group.add_argument(other, default=argparse.SUPPRESS, help=argparse.SUPPRESS, **more)

    option("--nnodes", default="1:1", help="Nodes, or MIN:MAX. A node is NPROC slots of a host.")
    option("--nproc-per-node", default="1", metavar="NPROC", help="Workers a node: a number, auto, gpu, cpu.")
    flag("--standalone", help="Accepted: edt-launch needs no rendezvous.")
    option("--rdzv-id", help="Name of the job, TORCHELASTIC_RUN_ID.")
    for name in ("--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf"):
        option(name, help="Accepted: edt-launch needs no rendezvous.")
    option("--master-addr", help="MASTER_ADDR, an address of this machine.")
    option("--master-port", type=int, help="MASTER_PORT of the first world; later ones have others.")
    option("--node-rank", help="0 where the job is run, if the command is started on each node.")
    option(
        "--max-restarts", default=0, type=int, help="How often the program may fail; resizes do not count."
    )
    option("--role", default="default", help="ROLE_NAME of the workers.")
    flag("-m", "--module", help="The program is a module.")
    flag("--no-python", help="The program is run as it is, without python.")
    flag("--run-path", help="The program is a script, given by its absolute path.")
    option("--log-dir", help="Folder of the logs of --redirects and --tee, and of error files.")
    option("-r", "--redirects", default="0", help="Streams that go to files only: 1, 2, 3, or RANK:N,...")
    option("-t", "--tee", default="0", help="Streams that go to files, too.")
    option("--log-line-prefix-template", help=f"Before each shown line; for --tee {PREFIX}")
    option("--local-ranks-filter", default="", help="Show only the output of these local ranks.")
    option("--duplicate-stdout-filters", default="", help="Copy lines with one of these words to a file.")
    option("--duplicate-stderr-filters", default="", help="The same for standard error.")
    option("--local-addr", help="MASTER_ADDR, if the right one is not found.")
    flag("--virtual-local-rank", help="LOCAL_RANK is 0, and each worker sees its device alone.")
    option("--numa-binding", choices=NUMA_BINDINGS, help="Bind to cores.")
    option("--shutdown-timeout", type=float, help="Seconds from SIGTERM to SIGKILL at the end; else 30.")
    option("--signals-to-handle", help="Accepted: edt-launch handles SIGTERM, SIGINT, SIGHUP.")
    option("--monitor-interval", help="Accepted: edt-launch learns at once how a worker ends.")
    option(
        "--start-method", choices=("spawn", "fork", "forkserver"), help="Accepted: for commands of no use."
    )
    option("--event-log-handler", help="Accepted: events are in events.jsonl.")
    option("--logs-specs", help="Accepted if it is the default.")
    group.add_argument(
        "--print-completion", "--print_completion", choices=("bash", "zsh", "tcsh"), help="A shell's."
    )
    if is_legacy:
        group.add_argument("--use-env", "--use_env", action="store_true", help="Pass no --local-rank.")
    else:
        parser.set_defaults(use_env=True)
    ours = parser.add_argument_group("options of edt torchrun")
    ours.add_argument(
        "--resize-at", default="checkpoint", metavar="checkpoint|now|epoch:N", help="When to resize."
    )
    ours.add_argument(
        "--grace", type=float, default=120.0, help="Seconds that a shrink waits for a checkpoint."
    )
    own = [each for each in options(RunOptions) if each.field.name not in _SHARED]
    more = parser.add_argument_group("options of edt-launch")
    for each in [*own, *(option for group in option_groups() for option in options(group))]:
        _add(more, each)
    parser.add_argument("training_script", help="The program, followed by its own arguments.")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser, own


def _add(group: Any, option: Any) -> None:
    """Add an option of edt-launch."""
    name, default, text = option.field.name, option.field.default, option.help.replace("%", "%%")
    if isinstance(default, bool):
        group.add_argument(
            *option.names, dest=name, action=argparse.BooleanOptionalAction, default=default, help=text
        )
        return
    kind = _kind_of(option)
    group.add_argument(*option.names, dest=name, type=kind, default=default, help=text)


def _kind_of(option: Any) -> Callable[[str], Any]:
    """What reads the option's value."""
    hint = str(option.field.type)
    for text, kind in (("ViewKind", _view), ("int", int), ("float", float), ("Path", Path)):
        if text in hint.partition("Option(")[0]:
            return kind
    return str


def _view(text: str) -> Any:
    from edt_launch.core.run_options import ViewKind

    return ViewKind(text)


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "0")
    try:
        return bool(int(text))
    except ValueError:
        raise UsageError(f"{name} is {text!r:.40}: give 1 or 0") from None


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


def _print_completion(parser: argparse.ArgumentParser, shell: str) -> NoReturn:
    try:
        import shtab  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError("--print-completion needs the package shtab: pip install shtab") from None
    print(shtab.complete(parser, shell=shell))
    sys.exit(0)
