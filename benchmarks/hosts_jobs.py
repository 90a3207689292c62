"""The jobs of `hosts.py`, over the hosts of a bed: EDT by hand and in a service's pool, and its peers."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil
from chaos_jobs import OnFirstHost, events
from elastic_jobs import SCRIPTS, EdtJob, Place, exit_text
from host_bed import HostBed
from strikes import ROLES

HOSTS = ("h1", "h2", "h3")
"""Those with a worker each."""

FIRST, STANDBY = "h0", "h4"
"""The host of the launcher or the service, and the one on which the service is started when that is lost."""

CARD = "eth0"


class HostsJob(Protocol):
    """A job over `HOSTS`."""

    @property
    def first(self) -> str:
        """The host of the launcher; of torchrun, that of the rendezvous."""

    def start(self) -> None:
        """Start it, or what was killed of it, as its user would."""

    def ended(self) -> str | None:
        """How it ended by itself; None while it runs."""

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        """Its events of these kinds; none of other systems."""

    def launcher(self) -> int:
        """The process that is to be killed as its launcher."""

    def allocate(self, *hosts: str) -> None:
        """Have it use these hosts; only EDT is told."""


class ByHand(EdtJob):
    """`edt-launch` on the first host."""

    network = ()
    first = FIRST

    def __init__(self, place: Place, bed: HostBed) -> None:
        super().__init__(OnFirstHost(place.folder, place.script_options, place.environment, bed))
        self.resize(len(HOSTS))

    def start(self, size: int = len(HOSTS)) -> None:  # noqa: D102
        super().start(size)

    def resize(self, size: int) -> None:  # noqa: D102
        self.allocate(*HOSTS[:size])

    def allocate(self, *hosts: str) -> None:  # noqa: D102
        self._generation += 1
        lines = [f"# edt allocation v1 generation={self._generation}", *(f"{host}:1" for host in hosts)]
        self._place.write("allocation", "".join(f"{line}\n" for line in lines))

    def told(self, *kinds: str) -> list[dict[str, Any]]:  # noqa: D102
        return events(self._place.folder / "out" / "events.jsonl", *kinds)

    def launcher(self) -> int:  # noqa: D102
        return self._process.pid


class InPool:
    """A job of a service, which runs on the first host, and on another one once that is lost."""

    def __init__(self, place: Place, bed: HostBed) -> None:
        self._bed = bed
        self._home = place.folder / "home"
        self._options = place.script_options
        self._place = Place(place.folder, [], {**place.environment, "EDT_HOME": str(self._home)})
        self._place.write("hosts", "".join(f"{host} slots=1\n" for host in HOSTS))
        self._id = ""
        self.first = FIRST

    def _edt(self, *words: object) -> list[str]:
        return self._bed.on(self.first, [sys.executable, "-m", "edt_launch.cli", *map(str, words)])

    def start(self) -> None:
        """Start the service, on the other host if this one is without power; submit the job, if it is new."""
        if self._id:
            self.first = {FIRST: STANDBY, STANDBY: FIRST}[self.first]
        words = ("--hostfile", self._place.folder / "hosts", "--port", 0)
        self._process = self._place.spawn(f"serve.{self.first}", *self._edt("serve", *words))

    def is_serving(self) -> bool:
        """Whether the newest process of the service answers."""
        try:
            return bool(json.loads((self._home / "server.json").read_text())["pid"] == self._process.pid)
        except FileNotFoundError:
            return False

    def submit(self) -> None:
        """Submit the job."""
        code = ("--code", SCRIPTS, "--min", 1, "--max", len(HOSTS), "--max-restarts", 1000)
        words = self._edt("submit", *code, "python", "train_edt.py", *self._options)
        done = subprocess.run(
            words, env=self._place.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        self._id = done.stdout.split()[-1]

    def ended(self) -> str | None:  # noqa: D102
        return exit_text(self._process.poll())

    def told(self, *kinds: str) -> list[dict[str, Any]]:  # noqa: D102
        return events(self._home / "jobs" / self._id / "events.jsonl", *kinds)

    def launcher(self) -> int:  # noqa: D102
        return next(process.pid for process in self._bed.processes(self.first) if _is_launcher(process))

    def allocate(self, *hosts: str) -> None:
        """The service does."""


class Peer:
    """A job of plain Horovod or torchrun. What was killed of it stays so: nothing starts it again."""

    def __init__(self, place: Place, commands: Mapping[str, list[str]], bed: HostBed) -> None:
        self._place = place
        self._bed = bed
        self._commands = commands
        self.first = next(iter(commands))

    def start(self) -> None:  # noqa: D102
        if not hasattr(self, "_processes"):
            self._processes = {
                host: self._place.spawn(f"job.{host}", *self._bed.on(host, command))
                for host, command in self._commands.items()
            }

    def ended(self) -> str | None:  # noqa: D102
        return exit_text(self._processes[self.first].poll())

    def told(self, *kinds: str) -> list[dict[str, Any]]:  # noqa: D102
        return []

    def launcher(self) -> int:  # noqa: D102
        return self._processes[self.first].pid

    def allocate(self, *hosts: str) -> None:
        """The hosts stay."""


def horovod(place: Place, bed: HostBed) -> Peer:
    """`horovodrun` in elastic mode, which needs the same name of the network card on all hosts."""
    discovery = place.write("discover", "#!/bin/sh\n" + "".join(f"echo {host}:1\n" for host in HOSTS))
    discovery.chmod(0o755)
    options = f"-np 3 --min-np 1 --max-np 3 --network-interface {CARD} --host-discovery-script {discovery}"
    horovodrun = [str(Path(sys.executable).with_name("horovodrun")), *options.split()]
    script = [sys.executable, str(SCRIPTS / "train_horovod.py"), *place.script_options]
    return Peer(place, {FIRST: [*horovodrun, *script]}, bed)


def torchrun(place: Place, bed: HostBed) -> Peer:
    """An agent on each host; the rendezvous is on the first one, and waits 1 s for more instead of 30 s."""
    options = (
        "-m torch.distributed.run --nnodes 1:3 --nproc-per-node 1 --max-restarts 100 --rdzv-id hosts "
        "--rdzv-backend c10d --rdzv-endpoint h1:29500 --rdzv-conf last_call_timeout=1"
    )
    script = [str(SCRIPTS / "train_torchrun.py"), *place.script_options]
    commands = {host: [sys.executable, *options.split(), "--local-addr", host, *script] for host in HOSTS}
    return Peer(place, commands, bed)


PEERS: Mapping[str, Callable[[Place, HostBed], Peer]] = {"horovod": horovod, "torchrun": torchrun}


def _is_launcher(process: psutil.Process) -> bool:
    try:
        return ROLES["launcher"](" ".join(process.cmdline()), False)
    except psutil.Error:
        return False
