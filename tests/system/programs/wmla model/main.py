"""A driver that speaks to edt-launch by itself: it does what the JSON in its first argument lists.

Each entry has one key: what to do, with its argument.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

acts = json.loads(sys.argv[1]) if len(sys.argv) > 1 else []
variable = os.environ.get("EDT_WMLA_LAUNCHER")
launcher = socket.socket(fileno=int(variable)) if variable else None
stream = launcher.makefile("rb") if launcher else None


def ask(message):
    launcher.sendall(json.dumps(message).encode() + b"\n")


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.02)


for act in acts:
    ((kind, what),) = act.items()
    if kind == "print":
        print(what)
    elif kind == "write":
        sys.stdout.write(what)
    elif kind == "show":
        print(json.dumps({name: os.environ.get(name) for name in what}))
    elif kind == "touch":
        with open(what, "w") as file:
            file.write(str(os.getpid()))
    elif kind == "wait_for":
        wait_for(what)
    elif kind == "ask":
        ask(what)
    elif kind == "train":
        ask({"type": "train", **what})
    elif kind == "answer":  # of the last training
        count = 0
        while (answer := json.loads(stream.readline() or '{"type": "gone"}'))["type"] == "executor_message":
            assert answer["text"].startswith(f"{count} ")
            count += 1
        if answer["type"] == "gone":
            sys.exit("edt-launch is gone")
        if count:
            print(count, "messages")
        assert (answer.pop("type"), answer.pop("number") >= 1) == ("ended", True)
        print("ended", json.dumps(answer))
        if what == "check" and answer["exit_code"]:
            raise RuntimeError(answer["message"])
    elif kind == "child":  # outlives its parent, unless somebody ends it
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(what, "w") as file:
            file.write(str(child.pid))
    elif kind == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif kind == "exit":
        sys.exit(what)
