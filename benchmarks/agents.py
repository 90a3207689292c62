"""What many agents cost a launcher, and how soon a change of the allocation has reached all of them.

    python benchmarks/agents.py --hosts 64

All agents run on this machine, started by a stand-in for ssh; each has a worker that only sleeps. Printed are

- `start`: seconds until the first worker of every host runs;
- `idle`: the part of a processor that the launcher takes while nothing happens, and all agents together;
- `change`: seconds from the new allocation file, with one more slot a host, until the launcher has sent the
  last of the agents what it means, and until the last new worker runs.

On a machine with fewer processors than hosts the last figure is mostly that of starting the processes.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

SSH = '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'
WORKER = 'date +%s.%N > "$1/$EDT_WORKER.part"; mv "$1/$EDT_WORKER.part" "$1/$EDT_WORKER"; exec sleep 3600'
POLL = 0.02


class Job:
    """A launcher with one host for each agent."""

    def __init__(self, folder: Path, hosts: int) -> None:
        self._folder, self._hosts = folder, hosts
        self._started, self._allocation = folder / "started", folder / "allocation"
        self._started.mkdir()
        ssh = folder / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(SSH)
        ssh.chmod(0o755)
        self.allocate(1)
        options = (
            "--max-np",
            str(2 * hosts),
            "--allocation",
            str(self._allocation),
            "--output-dir",
            folder / "out",
        )
        command = (
            sys.executable,
            "-m",
            "edt_launch.launcher.command",
            *options,
            "sh",
            "-c",
            WORKER,
            "sh",
            self._started,
        )
        variables = {**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"}
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, env=variables)
        self.launcher = psutil.Process(self._process.pid)

    def allocate(self, slots: int) -> float:
        """Give the job so many slots on each host; returns when."""
        lines = "".join(f"u{number}@127.0.0.1:{slots}\n" for number in range(self._hosts))
        beside = self._allocation.with_suffix(".new")
        beside.write_text(f"# edt allocation v1 generation={slots}\n{lines}")
        now = time.time()
        beside.rename(self._allocation)
        return now

    def until_started(self, count: int, limit: float) -> list[float]:
        """Wait for so many workers; returns when each began, in order."""
        deadline = time.monotonic() + limit
        while len(found := [path for path in self._started.iterdir() if path.suffix != ".part"]) < count:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(
                    f"{len(found)} of {count} workers run:\n{(self._folder / 'log').read_text()[-2000:]}"
                )
            time.sleep(POLL)
        return sorted(float(path.read_text()) for path in found)

    def told_at(self) -> float:
        """When the launcher sent its last order to start a worker."""
        lines = (self._folder / "out" / "events.jsonl").read_text().splitlines()
        return max(event["time"] for event in map(json.loads, lines) if event["event"] == "started")

    def agents(self) -> list[psutil.Process]:
        """The agents' processes."""
        return [p for p in self.launcher.children(recursive=True) if "edt_launch.agent" in p.cmdline()]

    def end(self) -> None:
        """End it, with everything that it has started."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()


def processor(processes: list[psutil.Process]) -> float:
    """Seconds of processor time that they have used."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def main() -> None:
    parser = argparse.ArgumentParser(description="What many agents cost a launcher.")
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument(
        "--idle", type=float, default=20.0, help="seconds for which the idle launcher is watched"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds until the job counts as stuck")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        begun, job = time.time(), Job(Path(name), args.hosts)
        try:
            first = job.until_started(args.hosts, args.limit)[-1] - begun
            print(f"start   {first:6.2f} s until {args.hosts} workers run")
            time.sleep(5)  # until everything has settled
            agents = job.agents()
            before, since = (processor([job.launcher]), processor(agents)), time.monotonic()
            time.sleep(args.idle)
            spent = time.monotonic() - since
            launcher, others = processor([job.launcher]) - before[0], processor(agents) - before[1]
            idle = f"{launcher / spent:.1%} of a processor for the launcher"
            print(f"idle    {idle}, {others / spent:.1%} for {len(agents)} agents")
            changed = job.allocate(2)
            last = job.until_started(2 * args.hosts, args.limit)[-1] - changed
            print(f"change  {job.told_at() - changed:6.2f} s until all are told, {last:.2f} s until all run")
        finally:
            job.end()


if __name__ == "__main__":
    main()
