r"""A submission's argument string, as dlicmd and notebooks send it: the platform's options and the script's.

Words are separated by runs of spaces, tabs and line ends, escaped (``\`` before a line end) or not; quotes
keep words together as in a shell. Both ``--opt value`` and ``--opt=value`` are read. Words that are no option
of the platform go to the script in their order, and so does everything after ``--``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edt_launch.adapters.wmla.submission.options import FLAGS, Use, use_of
from edt_launch.service.names import MOST_NAME, PLAIN

MOST = 2**16
"""Characters of an argument string."""

MOST_WORKERS = 2**16
"""Workers that can be asked for."""

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
    """The argument string makes no sense; the message names the option."""


@dataclass(frozen=True)
class Arguments:
    """What an argument string says. What it does not say is None or empty.

    Attributes:
        framework: from `--exec-start`.
        main: the script, from `--model-main`.
        folder: the last part of `--model-dir`.
        name: from `--appName`.
        workers: from `--numWorker`.
        devices: of each worker, from `--workerDeviceNum` or `--gpuPerWorker`.
        most: from `--edt-options maxWorkers=N`.
        data_path: below the data folder, from `--cs-datastore-meta`.
        datastore: `--cs-datastore-meta` as it was given.
        data_source: `--data-source` as it was given: JSON.
        priority: from `--msd-priority`; WMLA's usual one is 5000.
        level: from `--debug-level`.
        environment: variables, from `--msd-env`.
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


def words_of(text: str) -> list[str]:
    """The words of an argument string.

    Raises:
        ArgumentsError: a quote is not closed, or it is too long.
    """
    if len(text) > MOST:
        raise ArgumentsError(f"args has {len(text):,} characters; {MOST:,} are possible")
    if re.search("[\0\ud800-\udfff]", text):
        raise ArgumentsError("args contains a character that no program can be given")
    words: list[str] = []
    at, is_open = 0, False
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ArgumentsError(f"args: the quote before {text[at + 1 : at + 30]!r} is not closed")
        at = piece.end()
        if piece.lastgroup == "gap":
            is_open = False
            continue
        if not is_open:
            words.append("")
        is_open = True
        words[-1] += _meant(piece)
    return words


def _meant(piece: re.Match[str]) -> str:
    kind = piece.lastgroup or ""
    return re.sub(r'\\(["\\])', r"\1", piece[kind]) if kind == "double" else piece[kind]


def parse(text: str) -> Arguments:
    """What an argument string says.

    Raises:
        ArgumentsError: it makes no sense, or wants what is not possible here.
    """
    own: list[str] = []
    found = _Found()
    for name, word in _options(words_of(text)):
        if name is None:
            own.append(word)
        else:
            found.take(name, word)
    return found.arguments(own)


def _options(words: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """The platform's options and their values, and None with each word of the script."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from ((None, own) for own in rest)
            return
        option, is_joined, value = word.partition("=")
        name = option.removeprefix("--")
        use = use_of(name) if option.startswith("--") else None
        if use is None:
            yield None, word
        elif use is Use.REFUSED:
            raise ArgumentsError(f"{option} is not possible here; send a script and name it in --model-main")
        elif name in FLAGS or is_joined:
            yield name, value
        else:
            yield name, _value(option, next(rest, None))


def _value(option: str, word: str | None) -> str:
    if word is None or word.startswith("--"):
        raise ArgumentsError(f"{option} needs a value")
    return word


@dataclass
class _Found:
    """The options so far; of one that is given twice the last one counts, of `--msd-env` all."""

    values: dict[str, str] = field(default_factory=dict)
    environment: list[tuple[str, str]] = field(default_factory=list)

    def take(self, name: str, value: str) -> None:
        if name == "msd-env":
            self.environment.append(_variable(value))
        else:
            self.values[name] = value

    def arguments(self, script: Sequence[str]) -> Arguments:
        text = self.values.get
        return Arguments(
            framework=text("exec-start", ""),
            main=text("model-main", ""),
            folder=text("model-dir", "").rstrip("/").rpartition("/")[2],
            name=self._name(),
            workers=self._number("numWorker"),
            devices=self._devices(),
            most=self._most(),
            data_path=self._data_path(),
            datastore=text("cs-datastore-meta"),
            data_source=text("data-source"),
            priority=self._number("msd-priority"),
            level=self._level(),
            environment=tuple(self.environment),
            script=tuple(script),
        )

    def _name(self) -> str:
        name = self.values.get("appName", "")
        if len(name) > MOST_NAME or not re.fullmatch(PLAIN, name):
            raise ArgumentsError(f"--appName {name!r:.40}: expected a line of {MOST_NAME} characters at most")
        return name

    def _number(self, name: str) -> int | None:
        return positive(f"--{name}", self.values[name]) if name in self.values else None

    def _devices(self) -> int | None:
        for name in ("workerDeviceNum", "gpuPerWorker"):
            if self.values.get(name, "0") != "0":  # 0: no GPU, but a slot all the same
                return self._number(name)
        return None

    def _most(self) -> int | None:
        if "edt-options" not in self.values:
            return None
        pairs = _pairs("--edt-options", self.values["edt-options"])
        return positive("--edt-options maxWorkers", pairs["maxWorkers"]) if "maxWorkers" in pairs else None

    def _data_path(self) -> str | None:
        if "cs-datastore-meta" not in self.values:
            return None
        pairs = _pairs("--cs-datastore-meta", self.values["cs-datastore-meta"])
        if (kind := pairs.get("type", "fs")) != "fs":
            raise ArgumentsError(f"--cs-datastore-meta type={kind!r}: only type=fs is possible here")
        return pairs.get("data_path")

    def _level(self) -> str | None:
        level = self.values.get("debug-level")
        if level is not None and level not in LEVELS:
            raise ArgumentsError(f"--debug-level {level!r:.40}: expected one of {', '.join(LEVELS)}")
        return level


LEVELS = ("debug", "info", "warn", "error")


def positive(option: str, text: str) -> int:
    """A number of workers, devices and the like.

    Raises:
        ArgumentsError: it is none.
    """
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MOST_WORKERS:
        raise ArgumentsError(f"{option} {text!r:.40}: expected a number from 1 to {MOST_WORKERS:,}")
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
    if not is_pair or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise ArgumentsError(f"--msd-env {text!r:.40}: expected NAME=VALUE")
    return name, value
