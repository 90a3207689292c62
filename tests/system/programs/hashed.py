"""Runs a script that has a `state`, and writes down a SHA-256 of all that is in it.

hashed.py SCRIPT OUT [--delay S]

Every commit takes S seconds more, until a file OUT/hurry is there, so that there is time to resize the job.
"""

import argparse
import hashlib
import runpy
import sys
from pathlib import Path

from models import leaves
from traced import linger

import edt_hvd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("script", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--delay", type=float, default=0.0)
    options = parser.parse_args()

    commit = edt_hvd.TorchState.commit

    def slow_commit(state: edt_hvd.TorchState) -> None:
        linger(options.delay, options.out / "hurry")
        commit(state)

    edt_hvd.TorchState.commit = slow_commit  # type: ignore[method-assign]
    sys.path.insert(0, str(options.script.parent))
    state = runpy.run_path(str(options.script), run_name="__main__")["state"]
    if edt_hvd.is_coordinator():
        values = {name: getattr(state, name) for name in state._contents.names}
        trees = {
            name: each.state_dict() if hasattr(each, "state_dict") else each for name, each in values.items()
        }
        digest = hashlib.sha256()
        for name, data in leaves("", trees):
            digest.update(name.encode() + data)
        (options.out / "sha").write_text(digest.hexdigest())


if __name__ == "__main__":
    main()
