"""What a script puts into its own modules, and what of it executors find there."""

import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = {
    "config.py": (
        "import os, sys, threading\n"
        "data_dir = 'default'\n"
        "device = 'gpu' if 'EXECUTOR' in os.environ else 'none'\n"
        "CONF = {'device': device}\n"
        "lock = threading.Lock()\n"
        "writer = None\n"
        "large = b''\n"
        "class Options:\n"
        "    rate = 0.1\n"
        "    @property\n"
        "    def doubled(self): return 2 * self.rate\n"
        "class Mode(__import__('enum').Enum):\n"
        "    FAST = 1\n"
    ),
    "helper.py": (
        "STATE = {'k': 0}\nCACHE = {'k': 0}\n"
        "def count(): STATE['k'] += 1\n"
        "def state(): return STATE\n"
        "def cache(): return CACHE\n"
    ),
    "cyclic.py": "Z = []\n",
    "options.py": "import sys\ntaken = sys.argv.pop() if len(sys.argv) > 3 else None\n",
    "net.py": (
        "import torch, config\n"
        "model = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
        "layer = model[0]\n"
        "other = torch.randn(2)\n"
        "perm = __import__('random').sample(range(100), 5)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.5)\n"
        "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5)\n"
        "class Rates:\n"
        "    instance = None\n"
        "    def __init__(self): self.settings = SETTINGS\n"
        "    def on_epoch_begin(self, epoch): assert scheduler.optimizer is optimizer is self.params\n"
        "SETTINGS = {'device': config.device, 'rates': []}\n"
        "Rates.instance = Rates()\n"
        "class Held:\n"
        "    def __init__(self): self.model = model\n"
        "held = Held()\n"
        "def same(program):\n"
        "    return [\n"
        "        program.model is model is held.model, model[0] is layer, program.optimizer is optimizer,\n"
        "        optimizer.param_groups[0]['params'][0] is layer.weight, scheduler.optimizer is optimizer,\n"
        "        program.user_callback[0] is Rates.instance,\n"
        "    ]\n"
    ),
    "derived.py": "import config\nroot = config.data_dir + '/train'\n",
}

SCRIPT = """
import sys
from pathlib import Path
import torch
from edt_hvd.wmla import payload
from edt_hvd.wmla.channel import Address
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.schedule import Schedule
import config, cyclic, helper, net, options
from config import CONF, Mode
from net import model as MODEL, other as OTHER
from helper import CACHE, STATE
from deep.inner import settings
FAST = Mode.FAST

def datasets():
    import threading
    import derived
    assert MODEL is net.model
    assert STATE == helper.state() and config.Mode.FAST is FAST
    return {
        'data_dir': config.data_dir, 'root': derived.root, 'state': STATE, 'device': config.device,
        'writer': config.writer, 'large': len(config.large), 'rate': config.Options().doubled,
        'lock': isinstance(config.lock, type(threading.Lock())), 'deep': settings['deep'], 'cyclic': cyclic.Z,
        'conf': config.CONF, 'perm': net.perm, 'other': net.other.tolist(), 'settings': net.SETTINGS,
        'taken': options.taken, 'argv': sys.argv[1:],
    }

config.data_dir = sys.argv[1]
config.writer = config.lock
cyclic.Z.append(9)
config.large = bytes(2**20)
config.Options.rate = 0.5
settings['deep'] = True
helper.count()
import derived
program = Program(
    net.model, net.optimizer, torch.nn.MSELoss(), datasets, user_callback=(net.Rates.instance,)
)
print([OTHER.tolist(), net.perm])
payload.write(Path(sys.argv[2]), payload.Payload(program, Schedule(1, 8, 16, 2), Address(('::1',), 7, 's')))
"""

EXECUTOR = """
import sys
from pathlib import Path
from edt_hvd.wmla import payload
program = payload.read(Path(sys.argv[1])).program
import net
print({**program.datasets_function(), 'same': net.same(program)})
"""


def run(*arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    (folder / "deep").mkdir(parents=True)
    for name, text in BESIDE.items():
        (folder / name).write_text(text)
    (folder / "deep" / "inner.py").write_text("settings = {'deep': False}\n")
    (folder / "main.py").write_text(SCRIPT)
    return folder / "main.py"


def test_executors_find_what_the_script_has_set(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "training-1.pkl"
    driver = run("-m", "edt_hvd.wmla.script", script, "/data", path, "--mine")
    assert driver.returncode == 0, driver.stderr
    executor = run("-c", EXECUTOR, path, EXECUTOR="1")
    assert executor.returncode == 0, executor.stderr
    assert eval(executor.stdout) == {
        "data_dir": "/data",
        "root": "/data/train",
        "state": {"k": 1},
        "device": "gpu",
        "writer": None,
        "large": 2**20,
        "rate": 1.0,
        "lock": True,
        "deep": True,
        "cyclic": [9],
        "conf": {"device": "gpu"},
        "other": eval(driver.stdout)[0],
        "perm": eval(driver.stdout)[1],
        "settings": {"device": "gpu", "rates": []},
        "same": [True] * 6,
        "taken": "--mine",
        "argv": ["/data", str(path)],
    }
    warned = [line for line in driver.stderr.splitlines() if "is not sent to the executors" in line]
    (told,) = warned
    assert "config.writer is not sent to the executors, which have it as importing config leaves it" in told


def test_modules_that_were_installed_beneath_the_script_are_none_of_its_own(script: Path) -> None:
    installed = script.parent / "venv" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "library.py").write_text("setting = 1\n")
    script.write_text(
        "import sys\nsys.path.append('venv/site-packages')\n"
        f"sys.path.append({str(installed)!r})\n"
        "import config, library, tabnanny\nfrom edt_hvd.wmla import modules\n"
        "library.setting = config.data_dir = tabnanny.verbose = 2\n"
        "print([name for name, given in modules.watch().given().items() if given.changes])\n"
    )
    done = run("-m", "edt_hvd.wmla.script", script)
    assert done.stdout == "['config']\n", done.stderr


def test_a_module_that_fails_is_shown_as_if_we_were_not_there(script: Path) -> None:
    (script.parent / "failing.py").write_text("import broken\n")
    (script.parent / "broken.py").write_text("1 / 0\n")
    script.write_text("import failing\n")
    shown = [line for line in run("-m", "edt_hvd.wmla.script", script).stderr.splitlines() if "File" in line]
    assert [line.split('"')[1] for line in shown] == [
        str(script.parent / name) for name in ("main.py", "failing.py", "broken.py")
    ]
