"""Programs that need a process of their own, without importing torch for each."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from light import LIGHT

# Forks itself for each request. The fork goes on behind the loop, so that it ends as any program does.
# Python looks for cycles then: in all of torch, without `gc.freeze()`, which takes longer than most programs.
_SERVER = """
import gc, json, os, sys
{imports}
gc.freeze()
for line in sys.stdin:
    program, environ, output = json.loads(line)
    if (child := os.fork()) == 0:
        os.environ.clear()
        os.environ.update(environ)
        for name, descriptor in zip(output, (1, 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    program = ""
exec(program, {{"__name__": "__main__"}})
"""


class Interpreters:
    """Runs programs in forks of one process that has done the imports."""

    def __init__(self, imports: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER.format(imports=imports)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": LIGHT},
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, program: str, environ: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        with tempfile.TemporaryDirectory() as folder:
            output = [Path(folder, name) for name in ("out", "err")]
            request = json.dumps([program, dict(environ), [str(path) for path in output]])
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            out, err = (path.read_text() for path in output)
        return subprocess.CompletedProcess(program, code, out, err)
