r"""A submission's argument string, as dlicmd and notebooks send it: the platform's options and the script's.

Words are separated by runs of spaces, tabs and line ends, escaped (``\`` before a line end) or not; quotes
keep words together as in a shell. Both ``--opt value`` and ``--opt=value`` are read. Words that are no option
of the platform go to the script in their order, and so does everything after ``--``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edt_launch.service.names import MAX_NAME, PLAIN, VARIABLE

MAX_ARGS_LENGTH = 2**16  # characters of an argument string

MAX_WORKERS = 2**16

FLAGS = frozenset({"exclusive"})
"""Options without a value."""

USED = (
    *("exec-start", "model-main", "model-dir", "appName", "edt-options", "cs-datastore-meta", "data-source"),
    *("numWorker", "workerDeviceNum", "gpuPerWorker", "msd-env", "msd-priority", "debug-level"),
)
"""Those that decide something here."""

IGNORED = (
    *("consumer", "ig", "python-version", "query-args", "exclusive", "lsf-gpu-syntax", "numPs"),
    *("conda-env-name", "conda-home", "conda-env-yaml", "conda-yaml", "conda-package"),
    *("workerDeviceType", "workerMemory", "workerCPULimit", "workerGPULimit", "workerMemoryLimit"),
    *("driverDeviceType", "driverDeviceNum", "driverMemory", "driverCPULimit", "driverGPULimit"),
    *("driverMemoryLimit", "numDriver", "submit-user", "sc-runasuser", "sc-runasgroup", "sc-fsgroup"),
    *("cs-rmq-meta", "cs-url-meta", "cs-url-bearer"),
    *("msd-attr", "msd-label", "msd-image-name", "msd-image-pull-secret", "msd-pull-secret"),
    *("msd-image-pull-policy", "msd-pull-policy", "msd-task0-node-selector", "msd-task12n-node-selector"),
    *("msd-pending-timeout", "msd-pack-id"),
    *("rest-host", "master-host", "rest-port", "dli-rest-port", "username", "password", "jwt-token"),
)
"""Those that clients may give and that mean nothing here: they are taken out of the script's arguments."""

REFUSED = ("user-cmd", "pbmodel-name", "pbmodel-cmd")
"""Those without which the job would be another one."""

OPTIONS = frozenset((*USED, *IGNORED, *REFUSED))
"""All options of dlicmd that may stand in an argument string; what is not in here belongs to the script."""

IGNORED_FAMILY = "msd-podaffinity-"
"""How the names of a family of options begin that mean nothing here, either."""

LEVELS = ("debug", "info", "warn", "error")

# The last gaps are line ends that were escaped once too often.
_PIECE = re.compile(
    r"""(?P<gap> (?: \s | \\[ \t]*\r?\n | (?<!\S)\\(?=\s) | \\(?:[nt](?=\s|\Z)|\Z) )+ )
      | '(?P<single> [^']* )'
      | "(?P<double> (?: [^"\\] | \\. )* )"
      | \\(?P<escaped> . )
      | (?P<plain> [^\s'"\\]+ )""",
    re.VERBOSE | re.DOTALL,
)


class ArgumentsError(ValueError):
    """The argument string makes no sense, or wants what is impossible here; the message names the option."""


@dataclass(frozen=True)
class Arguments:
    """What an argument string says. What it does not say is None or empty.

    Attributes:
        main: the script, from `--model-main`.
        folder: the last part of `--model-dir`.
        devices: of each worker, from `--workerDeviceNum` or `--gpuPerWorker`.
        most: workers, from `--edt-options maxWorkers=N`.
        data_path: below the data folder, from `--cs-datastore-meta`.
        datastore: `--cs-datastore-meta` as it was given.
        data_source: `--data-source` as it was given: JSON.
        priority: WMLA's usual one is 5000.
        script: what the script gets.
    """

    framework: str = ""
    main: str = ""
    folder: str = ""
    name: str = ""
    workers: int | None = None
    devices: int | None = None
    most: int | None = None
    data_path: str | None = None
    datastore: str | None = None
    data_source: str | None = None
    priority: int | None = None
    level: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    script: tuple[str, ...] = ()


def is_platforms(name: str) -> bool:
    """Whether an option, by its name without dashes, is the platform's and not the script's."""
    return name in OPTIONS or name.startswith(IGNORED_FAMILY)


def words_of(text: str) -> list[str]:
    """The words of an argument string."""
    if len(text) > MAX_ARGS_LENGTH:
        raise ArgumentsError(f"args has {len(text):,} characters; {MAX_ARGS_LENGTH:,} are possible")
    if re.search("[\0\ud800-\udfff]", text):
        raise ArgumentsError("args contains a character that no program can be given")
    words: list[str] = []
    at, is_open = 0, False
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ArgumentsError(f"args: the quote before {text[at + 1 : at + 30]!r} is not closed")
        at = piece.end()
        kind = piece.lastgroup or ""
        if kind != "gap":
            if not is_open:
                words.append("")
            words[-1] += re.sub(r'\\(["\\])', r"\1", piece[kind]) if kind == "double" else piece[kind]
        is_open = kind != "gap"
    return words


def parse(text: str) -> Arguments:
    """What an argument string says; of options that are given twice the last counts, of `--msd-env` all."""
    script: list[str] = []
    environment: list[tuple[str, str]] = []
    values: dict[str, str] = {}
    for name, word in _options(words_of(text)):
        if name is None:
            script.append(word)
        elif name == "msd-env":
            environment.append(_variable(word))
        else:
            values[name] = word
    return Arguments(
        framework=values.get("exec-start", ""),
        main=values.get("model-main", ""),
        folder=values.get("model-dir", "").rstrip("/").rpartition("/")[2],
        name=_name(values.get("appName", "")),
        workers=_number(values, "numWorker"),
        devices=_devices(values),
        most=_most(values.get("edt-options", "")),
        data_path=_data_path(values.get("cs-datastore-meta", "")),
        datastore=values.get("cs-datastore-meta"),
        data_source=values.get("data-source"),
        priority=_number(values, "msd-priority"),
        level=_level(values.get("debug-level")),
        environment=tuple(environment),
        script=tuple(script),
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """The platform's options and their values, and None with each word of the script."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from ((None, own) for own in rest)
            return
        option, is_joined, value = word.partition("=")
        name = option.removeprefix("--")
        if not (option.startswith("--") and is_platforms(name)):
            yield None, word
        elif name in REFUSED:
            raise ArgumentsError(f"{option} is not possible here; send a script and name it in --model-main")
        elif name in FLAGS or is_joined:
            yield name, value
        else:
            yield name, _value(option, next(rest, None))


def _value(option: str, word: str | None) -> str:
    if word is None or word.startswith("--"):
        raise ArgumentsError(f"{option} needs a value")
    return word


def _name(name: str) -> str:
    if len(name) > MAX_NAME or not re.fullmatch(PLAIN, name):
        raise ArgumentsError(f"--appName {name!r:.40}: expected a line of {MAX_NAME} characters at most")
    return name


def _number(values: Mapping[str, str], name: str) -> int | None:
    return positive(f"--{name}", values[name]) if name in values else None


def _devices(values: Mapping[str, str]) -> int | None:
    for name in ("workerDeviceNum", "gpuPerWorker"):
        if values.get(name, "0") != "0":  # 0: no GPU, but a slot all the same
            return _number(values, name)
    return None


def _most(options: str) -> int | None:
    pairs = _pairs("--edt-options", options)
    return positive("--edt-options maxWorkers", pairs["maxWorkers"]) if "maxWorkers" in pairs else None


def _data_path(datastore: str) -> str | None:
    pairs = _pairs("--cs-datastore-meta", datastore)
    if (kind := pairs.get("type", "fs")) != "fs":
        raise ArgumentsError(f"--cs-datastore-meta type={kind!r}: only type=fs is possible here")
    return pairs.get("data_path")


def _level(level: str | None) -> str | None:
    if level is not None and level not in LEVELS:
        raise ArgumentsError(f"--debug-level {level!r:.40}: expected one of {', '.join(LEVELS)}")
    return level


def positive(option: str, text: str) -> int:
    """A number of workers, devices and the like."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_WORKERS:
        raise ArgumentsError(f"{option} {text!r:.40}: expected a number from 1 to {MAX_WORKERS:,}")
    return int(text)


def _pairs(option: str, text: str) -> dict[str, str]:
    """What stands as `name=value,name=value`."""
    pairs: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, is_pair, value = part.partition("=")
        if not is_pair:
            raise ArgumentsError(f"{option} {part!r:.40}: expected name=value")
        pairs[name.strip()] = value.strip()
    return pairs


def _variable(text: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not is_pair or not re.fullmatch(VARIABLE, name):
        raise ArgumentsError(f"--msd-env {text!r:.40}: expected NAME=VALUE")
    return name, value
