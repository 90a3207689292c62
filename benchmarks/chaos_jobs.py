"""The jobs of `chaos.py`: under `edt-launch`, over several hosts, in a service's pool, and on Ray."""
# ruff: noqa: D102 - `ChaosJob` and `strikes.Target` say what their methods do

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
import requests
import strikes
from attacked import journals
from attacked.service import CODE, TIMEOUT, Service, tar
from disturbed import history
from elastic_jobs import MARK, POLL, EdtJob, NotResizedError, Place, environment, exit_text
from host_bed import HostBed
from ray_nodes import NodeError, RayNodes
from strikes import ROLES, STOPPED, SmallDisk, later

TRAIN = Path(history.__file__).with_name("train.py")

SLOTS = (1, 2, 3, 4)

CUT_OFF = (2.0, 8.0)
"""Seconds for which a host is cut off, frozen or without power; three are needed to notice it."""

DRAINING = (3.0, 6.0)
"""Seconds from the notice of preemption of a node of a Ray cluster to its end."""

REFUSAL = 20.0
"""Seconds that a launcher or a service has to find out that its disk is full, on a busy machine."""


class ChaosJob(strikes.Target, Protocol):
    """A job that is started, resized, struck, revived and watched."""

    def start(self, size: int) -> None:
        """Start it."""

    def resize(self, size: int) -> None:
        """Have it get so many workers."""

    def leavers(self) -> list[str]:
        """Nobody asks here."""

    def ended(self) -> str | None:
        """How it ended by itself; None while it runs, or nobody can say."""

    def revive(self) -> None:
        """Start again what a supervisor would, once it was killed."""

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        """What the job has told of these kinds so far."""

    def members(self) -> list[psutil.Process]:
        """All its processes."""

    def strikes(self) -> dict[str, Callable[[], bool]]:
        """What can happen to it besides what happens to every job."""

    def close(self) -> list[str]:
        """End what is not the job itself; the promises that were broken."""


def events(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The whole lines of a file of events that are of these kinds."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:  # half a line
            continue
        if event.get("event") in kinds:
            found.append(event)
    return found


def may_refuse_until(disk: SmallDisk | None) -> float:
    """Until when what is started now may say that its disk is full, and end; of the monotonic clock."""
    return time.monotonic() + REFUSAL if disk is not None and disk.is_full else 0.0


class _Marked:
    """Finds a job's processes by a variable of their environment."""

    place: Place

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    def members(self) -> list[psutil.Process]:
        mark = self.place.environment[MARK]
        marked = [process for process in psutil.process_iter() if environment(process).get(MARK) == mark]
        told = [_process(event["pid"], event["time"]) for event in self.told("warm_server")]
        return marked + [process for process in told if process is not None and process not in marked]

    def of(self, role: str) -> list[psutil.Process]:
        workers = {event["pid"] for event in self.told("ready") if "pid" in event}
        return [process for process in self.members() if _is(role, process, workers)]

    def leavers(self) -> list[str]:
        return []

    def strikes(self) -> dict[str, Callable[[], bool]]:
        return {}


class Alone(_Marked, EdtJob):
    """`edt-launch`, started again whenever it was killed.

    Args:
        disk: that of its output directory, if that can be filled.
    """

    def __init__(self, place: Place, options: list[object], disk: SmallDisk | None = None) -> None:
        super().__init__(place, TRAIN, options)
        self.place = place
        self._disk = disk
        self._slots = 0
        self._may_refuse_until = 0.0
        self._lock = threading.RLock()

    @property
    def events(self) -> Path:
        return self.place.folder / "out" / "events.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.place.folder / "out" / "checkpoint"

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        return events(self.events, *kinds)

    def start(self, size: int) -> None:
        self._may_refuse_until = may_refuse_until(self._disk)
        super().start(size)

    def hosts(self, size: int) -> list[str]:
        """The lines of an allocation of so many slots."""
        return [f"localhost:{size} devices={','.join(f'cpu{number}' for number in range(size))}"]

    def resize(self, size: int) -> None:
        with self._lock:
            self._slots = size
            self._generation += 1
            lines = [f"# edt allocation v1 generation={self._generation}", *self.hosts(size)]
            self.place.write("allocation", "".join(f"{line}\n" for line in lines))

    def cut_allocation(self) -> bool:
        generation = self._generation

        def write_again() -> None:
            with self._lock:
                if self._generation == generation:
                    self.resize(self._slots)

        later(STOPPED, write_again)
        return strikes.cut(self.place.folder / "allocation")

    def cut_hosts(self) -> bool:
        return False

    def ended(self) -> str | None:
        found = super().ended()
        has_refused = found not in (None, "exit 0") and time.monotonic() < self._may_refuse_until
        return None if found == signal.SIGKILL.name or has_refused else found

    def revive(self) -> None:
        if super().ended() is not None and self.ended() is None:
            self.start(self._slots)

    def close(self) -> list[str]:
        return []


@dataclass
class OnFirstHost(Place):
    """A place whose commands run on the first host of a bed."""

    bed: HostBed

    def spawn(self, name: str, *command: object) -> "subprocess.Popen[bytes]":
        """Start a command there."""
        return super().spawn(name, *self.bed.on(self.bed.names[0], [str(word) for word in command]))


class OverHosts(Alone):
    """`edt-launch` on the first host of a bed, with workers on all others."""

    network = ()

    def __init__(self, place: OnFirstHost, options: list[object]) -> None:
        super().__init__(place, options)
        self._bed = place.bed

    def hosts(self, size: int) -> list[str]:
        hosts = random.sample(self._bed.names[1:], len(self._bed.names) - 1)
        slots = {host: len(range(number, size, len(hosts))) for number, host in enumerate(hosts)}
        return [
            f"{host}:{count} devices={','.join(f'cpu-{host}-{number}' for number in range(count))}"
            for host, count in slots.items()
            if count
        ]

    def members(self) -> list[psutil.Process]:
        return [process for host in self._bed.names for process in self._bed.processes(host)]

    def strikes(self) -> dict[str, Callable[[], bool]]:
        return {
            "pull cable": lambda: self._for_a_while(self._bed.unplug, self._bed.plug),
            "power off": lambda: self._for_a_while(self._bed.power_off, self._bed.plug),
            "freeze host": lambda: self._for_a_while(
                self._bed.freeze, lambda host: self._bed.freeze(host, False)
            ),
            "part hosts": self._part,
        }

    def _for_a_while(self, fault: Callable[[str], None], mend: Callable[[str], None]) -> bool:
        host = random.choice(self._bed.names[1:])
        fault(host)
        later(random.uniform(*CUT_OFF), lambda: mend(host))
        return True

    def _part(self) -> bool:
        one, other = random.sample(self._bed.names[1:], 2)
        if not self._bed.part(one, other, is_one_way=random.random() < 0.5):
            return False
        later(random.uniform(*CUT_OFF), lambda: self._bed.join(one, other))
        return True


class Pooled(_Marked):
    """A job in the pool of a service, which is started again whenever it was killed, and short jobs.

    Args:
        place: where the run keeps its files.
        restarts: how often a job may restart.
        settings: variables of the job's processes.
        disk: that of the service's folder, if that can be filled.
        source: the option for other hosts than those of a host file.
    """

    def __init__(
        self,
        place: Place,
        restarts: int,
        settings: Mapping[str, str],
        disk: SmallDisk | None = None,
        source: Sequence[str] | None = None,
    ) -> None:
        self.place = place
        self._disk = disk
        self._may_refuse_until = 0.0
        self._hosts = place.folder / "hosts"
        hosts = source or ("--hostfile", str(self._hosts))
        self._service = Service(place.folder / "service", *hosts, slots=None)
        self._service.environment = place.environment
        self._spec: dict[str, Any] = {
            "max_restarts": restarts,
            "environment": dict(settings),
            "checkpoint_interval": 0.5,
        }
        self._id = ""
        self._short: list[str] = []

    @property
    def events(self) -> Path:
        return self._service.home.job(self._id).output.events

    @property
    def checkpoints(self) -> Path:
        return self._service.home.job(self._id).output.checkpoint

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        return events(self.events, *kinds) if self._id else []

    def start(self, size: int) -> None:
        self._write_hosts()
        self._service.start()
        self._service.ready()
        files = {path.name: path.read_bytes() for path in TRAIN.parent.glob("*.py")}
        command = ["python", TRAIN.name, *self.place.script_options]
        answer = self._service.post_archive(tar(files), command=command, min=1, max=size, **self._spec)
        if not answer.ok:
            raise NotResizedError(f"was refused: {answer.text}")
        self._id = answer.json()["id"]

    def _write_hosts(self) -> None:
        self.place.write("hosts", f"localhost slots={SLOTS[-1]}\n")

    def resize(self, size: int) -> None:
        def ask() -> requests.Response:
            return self._service.ask("PATCH", f"/jobs/{self._id}", json={"max": size})

        self._until_acknowledged(ask, "could not be resized")

    def submit_short(self) -> None:
        """Submit a job that is over soon, until it is acknowledged."""
        key = f"short{len(self._short)}"
        spec: dict[str, Any] = {"name": key, "max_restarts": self._spec["max_restarts"]}
        spec["command"] = ["python", "brief.py", str(self._service.out)]

        def ask() -> requests.Response:
            return self._service.post_archive(tar(CODE), key=key, **spec)

        answer = self._until_acknowledged(ask, "could not be submitted")
        self._short.append(answer.json()["id"])

    def _until_acknowledged(self, ask: Callable[[], requests.Response], what: str) -> requests.Response:
        deadline, last = time.monotonic() + TIMEOUT, "no answer"
        while time.monotonic() < deadline:
            answer = self._ask(ask)
            if answer is not None and (answer.ok or answer.status_code == requests.codes.conflict):
                return answer
            last = answer.text if answer is not None else last
            self.revive()
            time.sleep(POLL)
        raise NotResizedError(f"{what} for {TIMEOUT:g} s: {last}")

    def cut_allocation(self) -> bool:
        """Cut it, and kill the service that has written it."""
        return strikes.cut(self._service.home.job(self._id).allocation) and strikes.send(
            self, "service", signal.SIGKILL
        )

    def cut_hosts(self) -> bool:
        later(STOPPED, self._write_hosts)
        return strikes.cut(self._hosts)

    def ended(self) -> str | None:
        answer = self._ask(lambda: self._service.ask("GET", f"/jobs/{self._id}"))
        job = answer.json() if answer is not None and answer.ok else {"state": "unknown"}
        ends = {"succeeded": "exit 0", "failed": f"failure: {job.get('failure')}", "stopped": "a stop"}
        return ends.get(job["state"])

    def revive(self) -> None:
        """Start the service again, if it was killed, or did not start on a full disk.

        Raises:
            NotResizedError: it has ended by itself.
        """
        assert self._service.process is not None
        ended = exit_text(self._service.process.poll())
        if ended not in (None, signal.SIGKILL.name) and time.monotonic() > self._may_refuse_until:
            raise NotResizedError(f"has lost its service by {ended}: {self._service.report()}")
        if ended is not None:
            self._may_refuse_until = may_refuse_until(self._disk)
            self._service.start()

    def _until_ready(self) -> None:
        while not self._service.is_ready:
            self.revive()
            time.sleep(POLL)

    def close(self) -> list[str]:
        self._until_ready()
        deadline = time.monotonic() + 5 * TIMEOUT
        while (left := self._unfinished()) and time.monotonic() < deadline:
            self.revive()
            time.sleep(POLL)
        broken = [f"the short job {id_} is {state}" for id_, state in left.items()]
        known = [folder.name for folder in self._service.home.jobs.glob("j*")]
        if sorted(known) != sorted([self._id, *self._short]):
            broken.append(f"there are folders of the jobs {known}; acknowledged: {self._id, *self._short}")
        used = {use.job for use in journals.uses(self._service.out) if use.end > use.begin}
        unseen = set(self._short) - used - set(left)
        broken += [f"the short job {id_} has not run to its end" for id_ in unseen]
        self._until_ready()
        code = self._service.end()
        if code != 0:
            broken.append(f"the service has ended with exit {code}: {self._service.report()}")
        return broken

    def _unfinished(self) -> dict[str, str]:
        """The acknowledged short jobs that have not succeeded, and what they are."""
        answer = self._ask(lambda: self._service.ask("GET", "/jobs?limit=1000&all=1"))
        if answer is None or not answer.ok:
            return dict.fromkeys(self._short, "unknown")
        states = {job["id"]: job["state"] for job in answer.json()["jobs"]}
        found = {id_: states.get(id_, "not there") for id_ in self._short}
        return {id_: state for id_, state in found.items() if state != "succeeded"}

    @staticmethod
    def _ask(ask: Callable[[], requests.Response]) -> requests.Response | None:
        """The answer; None from a service that is gone, or was stopped meanwhile."""
        try:
            return ask()
        except (requests.RequestException, FileNotFoundError, ValueError):
            return None


class OnRay(Pooled):
    """A job in the pool of a service on a Ray cluster, whose nodes come and go; the head stays."""

    def __init__(self, place: Place, restarts: int, settings: Mapping[str, str], nodes: RayNodes) -> None:
        source = ("--ray", nodes.address, "--ray-idle-timeout", "1")
        super().__init__(place, restarts, settings, source=source)
        self._nodes = nodes
        self._most = len(nodes.numbers)
        self._newest = max(nodes.numbers)
        self._drained: set[int] = set()
        self._later: list[threading.Timer] = []

    def members(self) -> list[psutil.Process]:
        return [*{*super().members(), *self._nodes.agents()}]

    def strikes(self) -> dict[str, Callable[[], bool]]:
        return {
            "add node": self._add,
            "power off node": lambda: self._strike(self._nodes.power_off),
            "kill Ray on node": lambda: self._strike(self._nodes.kill),
            "freeze node": self._freeze,
            "drain node": self._drain,
        }

    def _add(self) -> bool:
        if len(self._nodes.numbers) >= self._most:
            return False
        self._newest += 1
        try:
            self._nodes.add(self._newest)
        except NodeError as error:  # a busy machine
            print(error, flush=True)
            return False
        return True

    def _strike(self, fault: Callable[[int], object]) -> bool:
        staying = self._nodes.numbers - self._drained
        if staying:
            fault(random.choice(sorted(staying)))
        return bool(staying)

    def _freeze(self) -> bool:
        def freeze(number: int) -> None:
            self._nodes.freeze(number)
            seconds = random.uniform(*CUT_OFF)
            self._later.append(later(seconds, lambda: self._nodes.freeze(number, is_frozen=False)))

        return self._strike(freeze)

    def _drain(self) -> bool:
        def drain(number: int) -> None:
            self._drained.add(number)
            self._nodes.drain(number)
            self._later.append(later(random.uniform(*DRAINING), lambda: self._nodes.power_off(number)))

        return self._strike(drain)

    def close(self) -> list[str]:
        for each in self._later:
            each.join()
        return super().close()


def _is(role: str, process: psutil.Process, workers: set[int]) -> bool:
    try:
        return ROLES[role](" ".join(process.cmdline()), process.pid in workers)
    except psutil.Error:
        return False


def _process(pid: int, told_at: float) -> psutil.Process | None:
    """The process that had this number then, if it is alive."""
    try:
        found = psutil.Process(pid)
        is_it = found.create_time() <= told_at and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return found if is_it else None
