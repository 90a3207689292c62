"""The exit of a worker that leaves."""

from interpreters import Interpreters

PROGRAM = """
import atexit, sys
atexit.register(print, "registered first")
from edt_hvd.world import fast_exit
class Loud:
    def __del__(self):
        print("torn down")
loud = Loud()
atexit.register(print, "registered last")
fast_exit.register()
try:
    raise SystemExit(0)
finally:
    print("unwound")
"""


def test_everything_but_the_tearing_down_happens(interpreters: Interpreters) -> None:
    done = interpreters.run(PROGRAM)
    assert done.stdout.splitlines() == ["unwound", "registered last", "registered first"]
