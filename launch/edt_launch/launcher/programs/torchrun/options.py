"""The options of `torchrun`, with those of `edt-launch` among them.

Options, spellings, variables and defaults are those of `torch.distributed.run`, which is not imported here.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from edt_launch.core.command_line import options
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.transports.choice import option_groups

PREFIX = "[${role_name}${local_rank}]:"
"""What stands before the lines of `--tee`."""

NUMA_BINDINGS = ("node", "socket", "exclusive", "core-complex")

_SHARED = ("grace", "max_restarts")
"""Options of edt-launch whose names are other options here, or the same ones."""


class _Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        """As `edt` shows the help of all commands."""
        return super().format_help().replace("usage:", "Usage:", 1)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (edt torchrun --help lists the options)")


def option_parser(
    environment: Mapping[str, str], is_legacy: bool
) -> tuple[argparse.ArgumentParser, list[Any]]:
    """The parser, and the options of `RunOptions` that it has; see `command_line.parse`."""
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


def print_completion(parser: argparse.ArgumentParser, shell: str) -> NoReturn:
    """Print what makes a shell complete the options.

    Raises:
        UsageError: the package that knows how is not installed.
    """
    try:
        import shtab  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError("--print-completion needs the package shtab: pip install shtab") from None
    print(shtab.complete(parser, shell=shell))
    sys.exit(0)
