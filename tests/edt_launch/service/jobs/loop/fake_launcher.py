"""Stands in for edt-launch: follows its allocation file, takes requests, says so in events, has no workers.

While there is a file OUTPUT-DIR/finish it ends well. Only what it needs is imported: tests start many.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[5] / "launch"))  # `-S`: no site, so nothing that is installed
from edt_launch.launcher.runs.control_socket import ControlSocket, as_signals

ARGUMENTS = [word for word in sys.argv[1 : sys.argv.index("--")] if word != "--single-log"]
OPTIONS = dict(zip(ARGUMENTS[::2], ARGUMENTS[1::2], strict=True))
ROOT = Path(OPTIONS["--output-dir"])
FILE = Path(OPTIONS["--allocation"])
ASKED: list[int] = []


def send(event: str, **content: object) -> None:
    with (ROOT / "events.jsonl").open("a") as file:
        file.write(json.dumps({"event": event, "time": time.time(), **content}) + "\n")


def end(exit_code: int) -> None:
    send("ended", exit_code=exit_code, message="as it was told")
    sys.exit(exit_code)


def read() -> tuple[int, set[tuple[str, str]]]:
    header, *lines = FILE.read_text().splitlines()
    hosts = [line.split(" devices=") for line in lines if not line.startswith("#")]
    devices = {(host.split(":")[0], device) for host, names in hosts for device in names.split(",")}
    return int(header.rpartition("=")[2]), devices


def main() -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: ASKED.append(received))
    with ControlSocket(ROOT / "run" / "control", print) as control:
        run(control)


def run(control: ControlSocket) -> None:
    started = time.time()
    me = {"pid": os.getpid(), "started": _start_time()}
    (ROOT / "run" / "launcher").write_text(json.dumps(me))
    send("begun", **me, min_np=int(OPTIONS.get("--min-np", "1")), max_np=int(OPTIONS["--max-np"]))
    workers: dict[tuple[str, str], int] = {}
    generation, count = 0, 0
    while time.time() - started < 60:
        found, devices = read()
        if found != generation:
            for host, device in sorted(devices - workers.keys()):
                count += 1
                workers[host, device] = count
                send("started", worker=count, host=host, slot=0, device=device, rank=0)
            for gone in sorted(workers.keys() - devices):
                send("released", worker=workers.pop(gone), host=gone[0], slot=0, device=gone[1])
            generation = found
            send("following", generation=generation)
            send("ready", worker=count, pid=1)
            send("world", size=len(workers), generation=generation)
        for request in control.requests():
            ASKED.extend(as_signals(request))
        if ASKED:
            end(5 if signal.SIGUSR1 in ASKED else 143)
        if (ROOT / "finish").exists():
            end(0)
        time.sleep(0.01)


def _start_time() -> float:
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
