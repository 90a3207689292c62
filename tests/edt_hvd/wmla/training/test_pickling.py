import subprocess
import sys
from pathlib import Path

MADE = """
import sys
from enum import Enum, Flag
import torch
from edt_hvd.wmla.training import pickling

class Stage(Enum):
    FIRST, SECOND = 1, 2

class Parts(Flag):
    ONE, TWO = 1, 2

path = sys.argv[1]
value = [Stage.SECOND, Parts.ONE | Parts.TWO, {Stage.FIRST: torch.ones(1)}]
"""
WRITE = "torch.save(value, path, pickle_module=pickling)"
READ = """
found = torch.load(path, weights_only=False)
assert found[0] is Stage.SECOND and found[1] is value[1] and found[2][Stage.FIRST].item() == 1
"""


def test_members_are_those_of_the_process_though_it_has_made_their_class_anew(tmp_path: Path) -> None:
    for rest in (WRITE, READ):
        subprocess.run([sys.executable, "-c", MADE + rest, tmp_path / "saved"], check=True, timeout=120)
