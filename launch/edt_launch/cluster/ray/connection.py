"""The end of a bridge to a Ray cluster that jobs and pools hold. It starts the bridge again if that ends."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from edt_launch.cluster.ray import messages
from edt_launch.cluster.ray.holding import IDLE_LIMIT
from edt_launch.cluster.ray.messages import Ended, Failed, Open, Picture, Want
from edt_launch.core.errors import SourceError
from edt_launch.core.system.environments import own

BRIDGE = (sys.executable, "-P", "-m", "edt_launch.cluster.ray.bridge")

CONNECT_TIMEOUT = 90.0
"""Seconds that a bridge has for its first word; on a busy machine, Ray alone takes some of them."""

RETRY_INTERVAL = 5.0
"""Seconds from the end of a bridge to the start of the next one."""

END_TIMEOUT = 10.0
"""Seconds that a bridge has to end."""

LOST = "the connection to the Ray cluster was lost"


@dataclass(frozen=True)
class Options:
    """Of a bridge.

    Attributes:
        address: of the cluster, or ``auto``.
        pool: whose devices are held; holders are found again by it.
        holds_devices: whether to hold devices, or to start agents only.
        most: devices to hold at most; None for any number.
        is_kept: whether devices stay held for a while when the bridge ends.
        idle_limit: seconds for which an unused device is held.
    """

    address: str
    pool: str
    holds_devices: bool = True
    most: int | None = None
    is_kept: bool = False
    idle_limit: float = IDLE_LIMIT

    @property
    def words(self) -> list[str]:
        """As a command line has them."""
        words = ["--address", self.address, "--pool", self.pool, "--idle-limit", str(self.idle_limit)]
        words += [] if self.most is None else ["--most", str(self.most)]
        words += ["--holds-devices"] if self.holds_devices else []
        return [*words, "--keep"] if self.is_kept else words


class Connection:
    """A connection to a cluster; its methods may be called in any thread.

    Args:
        options: of the bridge.
        command: that is the bridge.
        retry_interval: seconds.
    """

    def __init__(
        self, options: Options, command: Sequence[str] = BRIDGE, retry_interval: float = RETRY_INTERVAL
    ) -> None:
        self._words = [*command, *options.words]
        self._retry_interval = retry_interval
        self._changed = threading.Condition()
        self._picture: Picture | None = None
        self._trouble = ""
        self._ended: dict[int, Ended | None] = {}
        """What has become of agents, None of those that are still there."""
        self._number = 0
        self._want = Want(0)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="edt-ray", daemon=True)
        self._thread.start()

    def picture(self, timeout: float = CONNECT_TIMEOUT) -> Picture:
        """What there is now; waits for the first one.

        Raises:
            SourceError: the cluster cannot be reached.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._picture is not None or self._trouble, timeout)
            if self._trouble:
                raise SourceError(self._trouble)
            if self._picture is None:
                raise SourceError(f"Ray has not answered for {timeout:g} s")
            return self._picture

    def want(self, slots: int, used: Sequence[tuple[str, str]] = ()) -> None:
        """Say how many devices jobs could use, and which they have."""
        want = Want(slots, tuple(sorted(used)))
        with self._changed:
            if want != self._want:
                self._want = want
                self._send(want)

    def run_agent(self, host: str, words: Sequence[str], text: str) -> Ended:
        """Run the command of an agent on a host; returns when it has ended, or nobody knows any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._picture is not None or self._trouble, CONNECT_TIMEOUT)
            self._number += 1
            number = self._number
            self._ended[number] = None
            if not self._send(Open(number, host, tuple(words), text)):
                return Ended(number, None, self._trouble or LOST)
            self._changed.wait_for(lambda: self._ended[number] is not None)
            ended = self._ended.pop(number)
        assert ended is not None
        return ended

    def close(self) -> None:
        """End the bridge."""
        self._stopped.set()
        with self._changed:
            process = self._process
            self._hang_up()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT)
            process.kill()
        self._thread.join()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            self._run()
            self._stopped.wait(self._retry_interval)

    def _run(self) -> None:
        process = subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(own()),
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with self._changed:
            self._process = process
            if not self._stopped.is_set():
                self._send(self._want)
            else:
                self._hang_up()
        with process.stdout:
            for line in process.stdout:
                self._take(messages.read(line.rstrip(b"\n")))
        process.wait()
        with self._changed:
            self._hang_up()
            self._process = None
            self._picture = None
            self._trouble = self._trouble or f"{LOST}; it is tried again"
            lost = Ended(0, None, self._trouble)
            self._ended = {number: ended or lost for number, ended in self._ended.items()}
            self._changed.notify_all()

    def _take(self, message: messages.Message) -> None:
        with self._changed:
            match message:
                case Picture():
                    self._picture, self._trouble = message, ""
                case Failed(text):
                    self._trouble = text
                case Ended(number) if number in self._ended:
                    self._ended[number] = message
            self._changed.notify_all()

    def _send(self, message: messages.Message) -> bool:
        """Send a message; False if there is no bridge to send it to. What is wanted, the next one hears."""
        if self._process is None or self._process.stdin is None or self._process.stdin.closed:
            return False
        try:
            self._process.stdin.write(messages.write(message))
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _hang_up(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
