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
    "kept.py": (
        "import collections, dataclasses, functools, threading, torch\n"
        "class Config:\n"
        "    _instance, _lock = None, threading.Lock()\n"
        "    def __init__(self): self.lock, self.dir, self.inner = threading.Lock(), 'default', Inner()\n"
        "    @classmethod\n"
        "    def get(cls):\n"
        "        cls._instance = cls._instance or cls()\n"
        "        return cls._instance\n"
        "    def __setattr__(self, name, value):\n"
        "        if self.__dict__.get('frozen'): raise AttributeError(name)\n"
        "        super().__setattr__(name, value)\n"
        "class Inner:\n"
        "    def __init__(self): self.lock, self.sizes = threading.Lock(), [1]\n"
        "class Attributes(dict):\n"
        "    __getattr__ = dict.__getitem__\n"
        "@dataclasses.dataclass(slots=True)\n"
        "class Slotted:\n"
        "    rate: float = 0.1\n"
        "config, attributes, slotted = Config(), Attributes(rate=0.1), Slotted()\n"
        "same_sizes = config.inner.sizes\n"
        "Config.get()\n"
        "ordered = collections.OrderedDict(a=1)\n"
        "weights, part = torch.ones(2), functools.partial(int, 1)\n"
        "teacher = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.5))\n"
        "layer, changed = teacher[0], torch.zeros(2)\n"
        "REGISTRY = {}\n"
        "def register(kind): return REGISTRY.setdefault(kind.__name__, kind)\n"
        "def all():\n"
        "    return {\n"
        "        'dir': config.dir, 'sizes': config.inner.sizes, 'same': config.inner.sizes is same_sizes,\n"
        "        'frozen': config.frozen, 'instance': Config.get().dir, 'rate': attributes.rate,\n"
        "        'slotted': slotted.rate, 'ordered': list(ordered), 'weights': weights.tolist(),\n"
        "        'part': part(), 'layer': layer.weight.item(), 'bias': teacher[0].bias.item(),\n"
        "        'training': teacher.training, 'drop': teacher[1].p, 'changed': changed.tolist(),\n"
        "        'made': REGISTRY['Made']().made(), 'locked': config.lock.locked(),\n"
        "    }\n"
    ),
    "shared.py": (
        "import functools, threading\n"
        "LOCK, NONE, CACHE, plus = threading.Lock(), object(), {}, lambda x: x + one\n"
        "one = 1\n"
        "def factory(x):\n"
        "    def make():\n"
        "        with LOCK: return CACHE.setdefault('made', x)\n"
        "    return make\n"
        "def scaled(x): return 2 * x\n"
        "def twice(function):\n"
        "    @functools.wraps(function)\n"
        "    def twice(x): return function(function(x))\n"
        "    return twice\n"
        "def init():\n"
        "    global Item\n"
        "    Item = type('Item', (), {'size': 3})\n"
        "class Nested:\n"
        "    class inner: size = 1\n"
    ),
    "every.py": "import random, shuffled\nrandom.seed(3)\nimport drawn\nafter = random.random()\n",
    "drawn.py": "import random\nvalue = random.random()\n",
    "shuffled.py": "import random\nvalue = random.random()\n",
    "models.py": "MODELS = {}\n",
    "strict.py": (
        "ALL, COUNT = [], 0\n"
        "class Odd(type):\n"
        "    def __eq__(cls, other): return cls.tag == other.tag\n"
        "    __hash__ = None\n"
        "    def __setattr__(cls, name, value): raise AttributeError(name)\n"
        "class Proxy(metaclass=Odd):\n"
        "    tag, rate = 't', 1\n"
        "    __slots__ = ('target',)\n"
        "    def __getattr__(self, name): raise KeyError(name)\n"
        "    __class__ = property(lambda self: self.other)\n"
        "odd, many, big = [Proxy()], {0: Proxy()}, 10**5000\n"
        "top = Proxy()\n"
        "import impl_a as impl\n"
        "def add(each):\n"
        "    assert each not in ALL, each + ' is there'\n"
        "    ALL.append(each)\n"
    ),
    "fills.py": "import strict\nstrict.add('filled')\nstrict.COUNT += 1\n",
    "impl_a.py": "rate = 1\n",
    "impl_b.py": "rate = 2\n",
    "made.py": ("import kept\n@kept.register\nclass Made:\n    def made(self): return 'made'\n"),
    "derived.py": "import config\nroot = config.data_dir + '/train'\n",
}

SCRIPT = """
import importlib
import sys
from pathlib import Path
import torch
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.channel import Address
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.schedule import Schedule
import config, cyclic, drawn, every, fills, helper, impl_b, kept, made, models, net, options, shared, strict
from linked import inner as linked
from config import CONF, Mode
from net import model as MODEL, other as OTHER
from helper import CACHE, STATE
from shared import CACHE as CACHED, NONE, plus
make = shared.factory('it')
from deep.inner import settings
FAST = Mode.FAST

def shared_things():
    from drawn import value
    import strict, fills
    import drawn, shuffled, every
    torch.backends.cudnn.deterministic = True
    return [
        make(), shared.CACHE is CACHED, NONE is shared.NONE, plus(1), shared.scaled(1), shared.Item.size,
        item.size, shared.Nested.inner.size, linked.settings,
        [*strict.ALL, strict.COUNT, strict.impl.rate, strict.Proxy.rate],
        [value, shuffled.value, every.after],
    ]

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
        'taken': options.taken, 'argv': sys.argv[1:], 'shared': shared_things(), 'kept': kept.all(),
    }

config.data_dir = sys.argv[1]
config.writer = config.lock
cyclic.Z.append(9)
config.large = bytes(2**20)
config.Options.rate = 0.5
settings['deep'] = True
helper.count()
strict.impl = impl_b
type.__setattr__(strict.Proxy, 'rate', 3)
strict.add('more')
importlib.reload(impl_b)
shared.one = 10
shared.scaled = shared.twice(shared.scaled)
shared.init()
item = shared.Item()
shared.Nested.inner.size = 2
linked.settings['linked'] = True
models.MODELS['net'] = net.model
drawn_there = [drawn.value, every.shuffled.value, every.after]
kept.config.dir = kept.Config.get().dir = sys.argv[1]
kept.config.inner.sizes.append(2)
kept.config.frozen = True
kept.attributes['rate'] = kept.slotted.rate = 0.5
kept.ordered.move_to_end('a')
kept.ordered['b'] = 2
kept.weights = torch.tensor([2.0, 3.0])
kept.part = __import__('functools').partial(int, 2)
kept.changed.add_(1)
kept.teacher.load_state_dict({'0.weight': torch.full((1, 1), 5.0), '0.bias': torch.full((1,), 6.0)})
kept.teacher.eval()[1].p = 0.25
import derived
program = Program(
    net.model, net.optimizer, torch.nn.MSELoss(), datasets, user_callback=(net.Rates.instance,)
)
print([OTHER.tolist(), net.perm, drawn_there])
payload.write(Path(sys.argv[2]), payload.Payload(program, Schedule(1, 8, 16, 2), Address(('::1',), 7, 's')))
"""

EXECUTOR = """
import sys
from pathlib import Path
from edt_hvd.wmla.handing import payload
program = payload.read(Path(sys.argv[1])).program
import models, net
assert models.MODELS['net'] is net.model
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
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "inner.py").write_text("settings = {}\n")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
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
        "shared": [
            "it",
            True,
            True,
            11,
            4,
            3,
            3,
            2,
            {"linked": True},
            ["filled", "more", 1, 2, 3],
            eval(driver.stdout)[2],
        ],
        "kept": {
            "dir": "/data",
            "sizes": [1, 2],
            "same": True,
            "frozen": True,
            "instance": "/data",
            "rate": 0.5,
            "slotted": 0.5,
            "ordered": ["a", "b"],
            "weights": [2.0, 3.0],
            "part": 2,
            "layer": 5.0,
            "bias": 6.0,
            "training": False,
            "drop": 0.25,
            "changed": [1.0, 1.0],
            "made": "made",
            "locked": False,
        },
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
        "import config, library, tabnanny\nfrom edt_hvd.wmla.handing import modules\n"
        "library.setting = config.data_dir = tabnanny.verbose = 2\n"
        "modules.watch().hand_out([])\n"
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
