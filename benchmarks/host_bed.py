"""Several hosts on one machine: network namespaces, each with a real sshd and its own host name.

What is cut off is cut as a cable would be: nothing is refused, nothing is answered. No packet leaves the
namespaces.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

NEEDED = ("ip", "sshd", "ssh-keygen", "unshare")

SUBNET = "10.77.0"

SMALL = 16 * 2**20
"""Bytes of a small disk."""

PORTS = "1024-65535"
"""Ports that programs choose."""

CONFIGURATION = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
AcceptEnv *
MaxStartups 100
"""

CLIENT = """
Host *
  IdentityFile {folder}/user_key
  UserKnownHostsFile {folder}/known_hosts
"""


def missing() -> str | None:
    """Why there can be no such hosts here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} for hosts in network namespaces"
    name = f"edt-{uuid.uuid4().hex[:6]}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


class HostBed:
    """Hosts `h0`, `h1`, ... that reach each other over one switch.

    Args:
        folder: for keys and logs.
        count: of hosts.
        card: the name of their network cards; None for another one on each host.
        disk: a folder of which each host has its own, with what agents keep; None if all disks are shared.
        small: the host whose own disk is small enough to be filled.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        card: str | None = None,
        disk: Path | None = None,
        small: str | None = None,
    ) -> None:
        self.folder = folder
        self._disk = disk
        self._small = small
        self._card = card
        self.names = [f"h{number}" for number in range(count)]
        self._mark = uuid.uuid4().hex[:6]
        self._servers: list[subprocess.Popen[bytes]] = []
        self._etc: list[Path] = []
        self._blackholes: set[tuple[str, str]] = set()

    def _namespace(self, host: str) -> str:
        return f"edt{self._mark}{host}"

    def _card_of(self, host: str) -> str:
        return self._card or f"card{self.names.index(host)}"

    def address(self, host: str) -> str:
        """The IPv4 address of a host."""
        return f"{SUBNET}.{1 + self.names.index(host)}"

    def disk_of(self, host: str) -> Path:
        """Where this machine sees the disk that a host has of its own."""
        return self.folder / f"disk.{host}"

    def open(self) -> None:
        """Make the hosts, and start their servers."""
        if self._disk is not None:
            self._disk.mkdir()
            for host in self.names:
                self.disk_of(host).mkdir()
            if self._small is not None:
                _run("mount", "-t", "tmpfs", "-o", f"size={SMALL}", "edt", self.disk_of(self._small))
        for key in ("host_key", "user_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key)
        own = f"SetEnv XDG_CACHE_HOME={self._disk}/cache\n" if self._disk is not None else ""
        (self.folder / "sshd_config").write_text(CONFIGURATION.format(folder=self.folder) + own)
        (self.folder / "ssh_config").write_text(CLIENT.format(folder=self.folder))
        ssh = self.folder / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/ssh_config "$@"\n')
        ssh.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        switch = self._namespace("sw")
        _run("ip", "netns", "add", switch)
        _run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "br0", "up")
        for host in self.names:
            self._plug_in(host, switch)
            server = [shutil.which("sshd") or "sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")]
            with (self.folder / f"sshd.{host}.log").open("wb") as log:
                self._servers.append(subprocess.Popen(self.on(host, server), stderr=log))

    def _plug_in(self, host: str, switch: str) -> None:
        card, name = self._card_of(host), self._namespace(host)
        etc = Path("/etc/netns") / name
        etc.mkdir(parents=True)
        self._etc.append(etc)
        lines = ["127.0.0.1 localhost", *(f"{self.address(each)} {each}" for each in self.names)]
        (etc / "hosts").write_text("\n".join(lines) + "\n")
        _run("ip", "netns", "add", name)
        _run("ip", "-n", switch, "link", "add", host, "type", "veth", "peer", "name", card, "netns", name)
        _run("ip", "-n", switch, "link", "set", host, "master", "br0", "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", name, "link", "set", card, "up")
        _run("ip", "-n", name, "address", "add", f"{self.address(host)}/24", "dev", card)

    def on(self, host: str, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on a host."""
        inside = ["ip", "netns", "exec", self._namespace(host)]
        own = f"mount --bind {self.disk_of(host)} {self._disk} && " if self._disk is not None else ""
        first = f'hostname {host} && {own}exec "$@"'
        return ["unshare", "--uts", "--mount", "sh", "-c", first, "sh", *inside, *command]

    def variables(self) -> Mapping[str, str]:
        """Variables with which `ssh` leads from one of these hosts to another."""
        return {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def processes(self, host: str) -> list[psutil.Process]:
        """What runs on a host, the server that lets others in excepted."""
        listed = _run("ip", "netns", "pids", self._namespace(host)).split()
        servers = {server.pid for server in self._servers}
        return [
            psutil.Process(pid) for pid in map(int, listed) if pid not in servers and psutil.pid_exists(pid)
        ]

    def unplug(self, host: str) -> None:
        """Pull the host's cable."""
        _run("ip", "-n", self._namespace("sw"), "link", "set", host, "nomaster")

    def plug(self, host: str) -> None:
        """Put the cable back."""
        _run("ip", "-n", self._namespace("sw"), "link", "set", host, "master", "br0")

    def part(self, one: str, other: str, is_one_way: bool = False) -> bool:
        """Let two hosts reach all others, but not each other; whether they have reached each other before.

        `is_one_way`: only what the first sends is lost.
        """
        if not self._blackholes.isdisjoint({(one, other), (other, one)}):
            return False
        ways = {(one, other)} if is_one_way else {(one, other), (other, one)}
        for here, there in ways:
            self._blackhole("add", here, there)
        self._blackholes |= ways
        return True

    def join(self, one: str, other: str) -> None:
        """Let two hosts reach each other again."""
        for here, there in self._blackholes & {(one, other), (other, one)}:
            self._blackhole("del", here, there)
        self._blackholes -= {(one, other), (other, one)}

    def _blackhole(self, change: str, here: str, there: str) -> None:
        _run("ip", "-n", self._namespace(here), "route", change, "blackhole", f"{self.address(there)}/32")

    def block_ports(self, host: str) -> None:
        """Let no new connection in at the ports that programs choose; nothing is refused or answered."""
        inside = ("ip", "netns", "exec", self._namespace(host), "nft")
        _run(*inside, "add table ip edt")
        _run(*inside, "add chain ip edt in { type filter hook input priority 0; }")
        _run(*inside, f"add rule ip edt in tcp dport {PORTS} tcp flags & (syn|ack) == syn drop")

    def impair(self, host: str, percent: int, rate: str) -> None:
        """Lose some of the packets that come and go, and limit what goes to a rate such as "100mbit"."""
        inside = ("ip", "netns", "exec", self._namespace(host))
        _run(*inside, "nft", "add table ip edt")
        for way in ("input", "output"):
            _run(*inside, "nft", f"add chain ip edt {way} {{ type filter hook {way} priority 0; }}")
            _run(*inside, "nft", f"add rule ip edt {way} numgen random mod 100 < {percent} drop")
        shape = ("root", "tbf", "rate", rate, "burst", "64k", "latency", "50ms")
        _run(*inside, "tc", "qdisc", "add", "dev", self._card_of(host), *shape)

    def add_card(self, host: str, name: str, address: str) -> None:
        """Give a host one more network card, which leads nowhere."""
        inside = ("ip", "-n", self._namespace(host))
        _run(*inside, "link", "add", name, "type", "bridge")
        _run(*inside, "link", "set", name, "up")
        _run(*inside, "address", "add", f"{address}/16", "dev", name)

    def forge_key(self, host: str) -> None:
        """Have ssh know another key of a host than it has."""
        forged = self.folder / "forged_key"
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", forged)
        key = forged.with_suffix(".pub").read_text()
        (self.folder / "known_hosts").write_text(f"{host} {key}")

    def open_ports(self, ports: str) -> None:
        """Have every host drop connections to others of its ports than these ("20000-20999") and ssh's."""
        chain = "inet", "edt", "input"
        allowed = f"{{ 22, {ports} }}"
        rules = (
            ("add", "table", *chain[:2]),
            ("add", "chain", *chain, "{ type filter hook input priority 0; }"),
            ("add", "rule", *chain, f"tcp flags & (syn | ack) == syn tcp dport != {allowed} drop"),
        )
        for host in self.names:
            for rule in rules:
                _run("ip", "netns", "exec", self._namespace(host), "nft", *rule)

    def freeze(self, host: str, is_frozen: bool = True) -> None:
        """Stop everything on a host, or let it go on."""
        for process in self.processes(host):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def host_of(self, pid: int) -> str | None:
        """The host on which a process runs; None if it is gone."""
        return next((host for host in self.names if any(p.pid == pid for p in self.processes(host))), None)

    def kill(self, pid: int) -> None:
        """Kill a process."""
        os.kill(pid, signal.SIGKILL)

    def power_off(self, host: str) -> None:
        """End everything on a host without a word to anybody."""
        self.unplug(host)
        for process in self.processes(host):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def close(self) -> None:
        """Remove the hosts with everything that runs on them."""
        for server in self._servers:
            server.kill()
            server.wait()
        for host in [*self.names, "sw"]:
            name = self._namespace(host)
            deadline = time.monotonic() + 10
            while (left := _run("ip", "netns", "pids", name).split()) and time.monotonic() < deadline:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.05)
            _run("ip", "netns", "del", name)
        for etc in self._etc:
            shutil.rmtree(etc)
        if self._small is not None:
            _run("umount", "--lazy", self.disk_of(self._small))


@contextlib.contextmanager
def hosts(
    folder: Path,
    count: int,
    card: str | None = None,
    disk: Path | None = None,
    small: str | None = None,
) -> Iterator[HostBed]:
    """So many hosts, gone at the end with everything on them."""
    bed = HostBed(folder, count, card, disk, small)
    try:
        bed.open()
        yield bed
    finally:
        bed.close()


def _run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout
