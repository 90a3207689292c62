"""The workers of a program for torchrun: their variables, log files and world."""

import importlib.util
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from edt_launch.agent.local_job import SNAPSHOTS
from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.history import events
from edt_launch.launcher.program import Workers
from edt_launch.launcher.programs.torchrun import failures
from edt_launch.launcher.programs.torchrun.arguments import Arguments, ResizeAt
from edt_launch.launcher.programs.torchrun.options import PREFIX
from edt_launch.launcher.view.output import Line
from edt_launch.membership import members
from edt_launch.membership.protocol import Resize, Slot, Worker
from edt_launch.worlds.torch_store import TorchStoreWorld

STREAMS = ("stdout", "stderr")

PREPARE = "EDT_PREPARE"
"""Names the module that prepares a forked worker for its program."""


@dataclass(frozen=True)
class Place:
    """Where a worker stands in its world: a node is as many slots of one host as a node has workers."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    node: int
    host: str
    devices: tuple[str, ...] | None
    """Those of its node; None where no devices are bound."""

    @classmethod
    def of(cls, rank: int, slots: Sequence[Slot], nproc: int) -> "Place":
        """Of a rank among the slots of a world."""
        node, local_rank = divmod(rank, nproc)
        devices = tuple(slot.device for slot in slots[node * nproc :][:nproc] if slot.device is not None)
        return cls(rank, len(slots), local_rank, nproc, node, slots[rank].host, devices or None)


def variables(place: Place, arguments: Arguments, attempt: int) -> dict[str, str]:
    """What torchrun sets for a worker, but for where its world meets and its error file."""
    numbers = {
        "RANK": place.rank,
        "WORLD_SIZE": place.size,
        "LOCAL_RANK": 0 if arguments.virtual_local_rank else place.local_rank,
        "LOCAL_WORLD_SIZE": place.local_size,
        "GROUP_RANK": place.node,
        "GROUP_WORLD_SIZE": place.size // place.local_size,
        "ROLE_RANK": place.rank,
        "ROLE_WORLD_SIZE": place.size,
        "TORCHELASTIC_RESTART_COUNT": attempt,
        "TORCHELASTIC_MAX_RESTARTS": arguments.max_restarts,
    }
    named = {name: str(number) for name, number in numbers.items()}
    named |= {"ROLE_NAME": arguments.role, "TORCHELASTIC_RUN_ID": arguments.run_id}
    if place.devices is not None:
        seen = place.devices[place.local_rank :][:1] if arguments.virtual_local_rank else place.devices
        named["CUDA_VISIBLE_DEVICES"] = ",".join(seen)
    return named


@dataclass(kw_only=True)
class TorchrunWorkers(Workers):
    """The workers of a program for torchrun.

    Attributes:
        logs: the folder of their logs and error files.
        complain: told when those cannot be written.
    """

    arguments: Arguments
    logs: Path
    complain: Complain
    allowed: tuple[int, ...] = ()
    resize: Resize = Resize.RESTART_ALL
    _name: str = field(default_factory=lambda: uuid.uuid4().hex, init=False)
    _places: dict[int, Place] = field(default_factory=dict, init=False)
    _folders: dict[int, Path] = field(default_factory=dict, init=False)
    _filtered: dict[str, Appender] = field(default_factory=dict, init=False)

    def limits(self, limits: members.WorldLimits) -> members.WorldLimits:  # noqa: D102
        return replace(
            limits,
            unit=self.arguments.nproc,
            allowed=self.allowed,
            max_restarts=self.arguments.max_restarts,
            grace=self.arguments.grace,
            end_grace=self.end_grace,
            resizes_at_once=self.arguments.resizing.at is ResizeAt.NOW,
        )

    def world(self, address_towards: Callable[[Iterable[str]], str]) -> TorchStoreWorld:  # noqa: D102
        named = self.arguments.master_addr
        return TorchStoreWorld(
            lambda hosts: named or address_towards(hosts), self.arguments.master_port, self.ports
        )

    def environment(self, common: Mapping[str, str]) -> dict[str, str]:
        """What all find: threads as torchrun sets them, and the modules that stand in for torchelastic."""
        found = super().environment(common)
        if self.arguments.nproc == 1 and "OMP_NUM_THREADS" not in os.environ:
            found.pop("OMP_NUM_THREADS", None)
        found.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
        found[PREPARE] = "edt_hvd.torchrun.worker"
        found[SNAPSHOTS] = f"/dev/shm/edt-snapshots-{self._name}"
        found["EDT_RESIZE_AT"] = str(self.arguments.resizing)
        if self.arguments.numa_binding is not None:
            found["EDT_NUMA_BINDING"] = self.arguments.numa_binding
        path = [_folder("site"), *([found["PYTHONPATH"]] if found.get("PYTHONPATH") else [])]
        if importlib.util.find_spec("torchelastic") is None:
            path.append(_folder("stand_in"))
        found["PYTHONPATH"] = os.pathsep.join(path)
        return found

    def variables_of(self, worker: Worker, slots: Sequence[Slot], address: str) -> dict[str, str]:
        """What a worker finds besides; its folder is made."""
        place = self._places[worker.id] = Place.of(worker.rank, slots, self.arguments.nproc)
        folder = self._folders[worker.id] = self._folder(place, worker.attempt)
        file = folder / "error.json"
        own = {"TORCHELASTIC_ERROR_FILE": str(file), "EDT_GENERATION": str(worker.generation)}
        if self._has_no_logs:
            own["TORCHELASTIC_ERROR_FILE"] = ""
        else:
            self._make(folder, worker)
        return {**variables(place, self.arguments, worker.attempt), **own}

    def _make(self, folder: Path, worker: Worker) -> None:
        """Have the folder, with its logs, which are there without a line, too, and without an old error."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "error.json").unlink(missing_ok=True)
            for stream in STREAMS:
                if (copy := self.copy_of(worker.id, stream)) is not None:
                    copy.touch()
        except OSError as error:
            self.complain(f"rank {worker.rank} starts without its folder: {error.filename}: {error.strerror}")

    @property
    def _has_no_logs(self) -> bool:
        return str(self.logs) == os.devnull

    def command_of(self, worker: Worker) -> Sequence[str]:
        """With the local rank, if the program expects it as an argument, before its other arguments."""
        if not self.arguments.passes_local_rank:
            return ()
        end = 4 if self.command[2:3] == ("-m",) else 3
        option = f"--local-rank={self._places[worker.id].local_rank}"
        return (*self.command[:end], option, *self.command[end:])

    def _folder(self, place: Place, attempt: int) -> Path:
        """Where torchrun has the files of a worker; with several nodes, of each node for itself."""
        node = "" if place.size == place.local_size else f"_node{place.node}"
        run = f"{self.arguments.run_id}_{self._name[:8]}{node}"
        return self.logs / run / f"attempt_{attempt}" / str(place.local_rank)

    def copy_of(self, worker: int, stream: str) -> Path | None:  # noqa: D102
        local_rank, asked = self._places[worker].local_rank, self.arguments
        is_kept = asked.redirects.has(local_rank, stream) or asked.tee.has(local_rank, stream)
        return self._folders[worker] / f"{stream}.log" if is_kept and not self._has_no_logs else None

    def shown(self, line: Line) -> Line:
        """As torchrun shows it: with its prefix, or not at all if it goes to a file only."""
        place = self._places.get(-1 if line.worker is None else line.worker)
        if place is None or line.worker is None:
            return line
        asked, local_rank = self.arguments, place.local_rank
        is_teed = asked.tee.has(local_rank, line.stream)
        is_copied = asked.redirects.has(local_rank, line.stream)
        is_shown = is_teed or not is_copied
        is_shown = is_shown and (not asked.local_ranks or local_rank in asked.local_ranks)
        if is_teed:
            self._duplicate(line)
        template = asked.prefix or (PREFIX if is_teed else None)
        prefix = None if template is None else self._prefix(template, place)
        return replace(line, prefix=prefix, is_shown=is_shown, is_copied=is_copied)

    def _prefix(self, template: str, place: Place) -> str:
        return Template(template).safe_substitute(
            role_name=self.arguments.role,
            rank=place.rank,
            local_rank=place.local_rank,
            hostname=socket.gethostname() if place.host == "localhost" else place.host,
        )

    def _duplicate(self, line: Line) -> None:
        """Copy a line to the file of its stream, if it has one of the words that the user looks for."""
        filters = {"stdout": self.arguments.stdout_filters, "stderr": self.arguments.stderr_filters}[
            line.stream
        ]
        if line.worker is None or self._has_no_logs or not any(word in line.text for word in filters):
            return
        if line.stream not in self._filtered:
            path = self._folders[line.worker].parent / f"filtered_{line.stream}.log"
            self._filtered[line.stream] = Appender(path, self.complain)
        self._filtered[line.stream].write(f"{line.text}\n")
        self._filtered[line.stream].flush()

    def how_to_go_on(self, folder: Path, output: str) -> str:
        """The program has its own checkpoints."""
        return "started again, the program goes on from its own checkpoint"

    def explain(self, failures_: Sequence[events.Failed]) -> str:
        """The failures of the last attempt with their error files, the first one last."""
        started = [each for each in failures_ if each.worker in self._folders]
        attempts = [self._folders[each.worker].parent.name for each in started]
        known = [each for each, attempt in zip(started, attempts, strict=True) if attempt == attempts[-1]]
        title = next((word for word in self.arguments.command[1:] if not word.startswith("-")), "")
        return failures.describe(
            title or self.arguments.command[0],
            [
                failures.WorkerFailure(
                    each, self._places[each.worker].local_rank, self._folders[each.worker] / "error.json"
                )
                for each in known
            ],
        )


def _folder(name: str) -> str:
    """A folder of modules that are for the paths of workers."""
    spec = importlib.util.find_spec("edt_hvd")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "torchrun" / name)
