"""A Slurm cluster of several nodes on this machine: munged, slurmctld and a slurmd for each node."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")

DEADLINE = 120.0
"""Seconds that something may take which takes a few here."""

CONFIGURATION = """\
ClusterName=edt
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=6
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=60
{nodes}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=20 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP
"""


def missing() -> str:
    """Why there can be no cluster here; empty if there can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"without {', '.join(absent)}: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class SlurmCluster:
    """The cluster, while in its context. Afterwards no process of it is left.

    Attributes:
        environment: with which Slurm's commands reach it.
    """

    def __init__(self, folder: Path, nodes: int = 3, cpus: int = 1) -> None:
        self.folder = folder
        self.nodes = tuple(f"127.0.0.{number}" for number in range(1, nodes + 1))
        """Names that need no resolver."""
        self._cpus = cpus
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = dict(os.environ) | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        ports = _free_ports(1 + len(self.nodes))
        nodes = "\n".join(
            f"NodeName={name} NodeHostname=localhost NodeAddr={name} Port={port} CPUs={self._cpus}"
            for name, port in zip(self.nodes, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(port=ports[0], user=getpass.getuser(), folder=self.folder, nodes=nodes)
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "state").mkdir()
        for name in self.nodes:
            (self.folder / f"spool-{name}").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        munge = ("--socket", self.folder / "munge.socket", "--key-file", key)
        files = ("--pid-file", self.folder / "munge.pid", "--log-file", self.folder / "munge.log")
        seed = ("--seed-file", self.folder / "munge.seed")
        self._run("munged", "--foreground", "--force", *munge, *files, *seed)
        self.until((self.folder / "munge.socket").exists)
        self._run("slurmctld", "-D")
        for name in self.nodes:
            self.start_node(name)
        self.until(lambda: self.states() == dict.fromkeys(self.nodes, "idle"))

    def start_node(self, name: str) -> None:
        """Start a node's slurmd."""
        self._run("slurmd", "-D", "-N", name, key=name)

    def lose_node(self, name: str) -> None:
        """A node is gone: its slurmd, and all that it has started."""
        slurmd = self._processes.pop(name)
        started = _descendants(slurmd.pid) | _of_node(name, self.folder)
        for pid in (slurmd.pid, *started):
            _kill(pid)
        slurmd.wait()

    def _run(self, *words: str | Path, key: str = "") -> None:
        output = (self.folder / f"{key or words[0]}.out").open("ab")
        self._processes[key or str(words[0])] = subprocess.Popen(
            words, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        output.close()

    def run(self, *words: str | Path, cwd: Path | None = None) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            words,
            env=self.environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """The state of each node."""
        done = subprocess.run(
            ("sinfo", "-h", "-N", "-p", "low", "-o", "%N %T"),
            env=self.environment, capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
        return dict(line.split() for line in done.stdout.splitlines())

    def show(self, job: str) -> dict[str, str]:
        """What Slurm knows of a job."""
        text = self.run("scontrol", "show", "job", "-o", job)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def until(self, condition: Callable[[], object], seconds: float = DEADLINE) -> None:
        """Wait for something."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self._logs()
            assert all(process.poll() is None for process in self._processes.values()), self._logs()
            time.sleep(0.1)

    def _logs(self) -> str:
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in (*self.folder.glob("*.log"), *self.folder.glob("*.out"))
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "slurmctld" in self._processes:
            subprocess.run(
                ("scancel", "--signal=KILL", "--full", "-u", getpass.getuser()),
                env=self.environment, capture_output=True, timeout=DEADLINE, check=False,
            )  # fmt: skip
        steps = {pid for name in self.nodes for pid in _of_node(name, self.folder)}
        for process in reversed(self._processes.values()):
            steps |= _descendants(process.pid)
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in steps:
            _kill(pid)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _descendants(pid: int) -> set[int]:
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def _of_node(name: str, folder: Path) -> set[int]:
    """Processes of jobs on a node: slurmstepd has left its slurmd, its children have the node's name."""
    found = set()
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if environment.get("SLURMD_NODENAME") == name and environment.get("SLURM_CONF") == str(
            folder / "slurm.conf"
        ):
            found.add(process.pid)
            found |= {one.pid for one in process.parents() if one.name() == "slurmstepd"}
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
