"""A script in one process, and an executor that is given what it trains in another."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from edt_hvd.wmla.job_dir import JobDir
from interpreters import Interpreters

HELPER = """
import functools, os, queue, threading, typing

lock, table, log = threading.Lock(), [], open(os.devnull, "w")
tasks, parts = queue.Queue(), {"log": log}
Number = typing.NewType("Number", int)
size = 1

class Point:
    def __init__(self, x):
        self.x = x

def grown(x):
    with lock:
        return len(table) + x + size

class Registered:
    lock = threading.Lock()
    def __init_subclass__(cls):
        names.append(cls.__name__)

names = []

class Net(Registered):
    @functools.cached_property
    def width(self):
        return Number(3)

@functools.lru_cache(maxsize=4)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

fibonacci(9)

class Refused(Exception):
    def __init__(self, host, port):
        super().__init__(f"{host}:{port}")
"""

SCRIPT = """
import argparse, dataclasses, enum, functools, os, random, sys, threading
import torch, torch.nn.functional as F
from torch.nn.utils import parametrizations
from edt_hvd.wmla import FabricModel
from tools import helper
from tools.helper import Point

model = torch.nn.Linear(2, 2)
samples = [(torch.ones(2), index % 2) for index in range(8)]
loss = F.cross_entropy
called = []

def datasets():
    called.append(os.getpid())
    return samples, None

class Base:
    def on_train_begin(self):
        self.check()

optimizer = torch.optim.SGD(model.parameters(), 0.1)

def make(callback=None, **options):
    return FabricModel(model, datasets, loss, optimizer, user_callback=callback, **options)

def train(callback=None, **options):
    make(callback, **options).train(1, 2, 2)
"""

DRIVER = """
import json, runpy, sys
from pathlib import Path
from edt_hvd.wmla import program_file
from edt_hvd.wmla.fabric_model import FabricModel
from edt_hvd.wmla.job_dir import JobDir
from edt_hvd.wmla.train_config import TrainConfig

def train(self, epochs, batch, engines):
    folder = JobDir.of().training(1)
    folder.begin()
    config = TrainConfig(epochs, batch, batch * engines, engines, deterministic=False)
    digest = program_file.write(folder, self._program, config, program_file.Settings.now())
    print("digest", digest)

FabricModel.train = train
sys.argv = {arguments!r}
sys.path[0] = {folder!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""

EXECUTOR = """
import sys
from edt_hvd.progress import program_messages
from edt_hvd.wmla.executor import main

def send(text):
    with open({sent!r}, "a") as file:
        file.write(text + "\\n")

program_messages.send = send
sys.argv = {arguments!r}
main()
"""


class Job:
    """A folder of a job, its script, and an executor."""

    def __init__(self, folder: Path, interpreters: Interpreters) -> None:
        self.interpreters, self.folder = interpreters, folder
        (folder / "code" / "tools").mkdir(parents=True)
        (folder / "code" / "tools" / "helper.py").write_text(HELPER)
        (folder / "code" / "tools" / "__init__.py").touch()
        self.script = folder / "code" / "main.py"
        (folder / "log").mkdir()
        self.sent = folder / "sent"
        self.training = JobDir.of({"RESULT_DIR": str(folder)}).training(1)
        self.environment = os.environ | {
            "RESULT_DIR": str(folder),
            "LOG_DIR": str(folder / "log"),
            "EDT_WMLA_DETERMINISTIC": "0",
        }

    def drive(self, text: str) -> subprocess.CompletedProcess[str]:
        self.script.write_text(SCRIPT + text)
        arguments = [str(self.script), "an argument"]
        program = DRIVER.format(arguments=arguments, folder=str(self.script.parent))
        return self.interpreters.run(program, self.environment)

    def execute(self, digest: str) -> subprocess.CompletedProcess[str]:
        arguments = ["executor", str(self.script), str(self.training.path), digest]
        program = EXECUTOR.format(arguments=arguments, sent=str(self.sent))
        return self.interpreters.run(program, self.environment)

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        driven = self.drive(text)
        assert driven.returncode == 0, driven.stderr
        return self.execute(driven.stdout.split()[-1])

    def results(self) -> list[str]:
        return [json.loads(line)["is"] for line in self.sent.read_text().splitlines()]


@pytest.fixture
def job(tmp_path: Path, importing: Interpreters) -> Job:
    return Job(tmp_path, importing)


EXECUTORS_HAVE = {
    "callbacks with modules, globals, closures, settings and random numbers": """
helper.table += [Point(1), Point(2)]
helper.size = 5
class OfAModule(Base):
    def check(self):
        import tools.helper as imported
        assert imported is helper and helper.grown(1) == 8 and type(helper.table[0]) is Point
        helper.size = 6
        assert helper.grown(1) == 9
        helper.tasks.put(1)
        assert helper.tasks.get() == 1 and helper.fibonacci(10) == 55 and helper.Net().width == 3
        with helper.Net.lock:
            type("New", (helper.Registered,), {})
        assert helper.names == ["Net", "New"]
        for name, use in (("log", lambda: helper.log.write("")), ("parts", lambda: helper.parts["log"])):
            try:
                use()
            except Exception as error:
                assert f"executors do not have tools.helper.{name}, a " in str(error), error
            else:
                raise AssertionError

shared = {"n": 1}
count = 0
def bump():
    global count
    count += 1
    shared["n"] += 1
class OfGlobals(Base):
    shared = shared
    def check(self):
        bump(); bump()
        assert count == 2 and self.shared is shared and shared["n"] == 3

Kind = enum.Enum("Kind", "ONE TWO")
class Own(enum.IntFlag):
    A = 1
@dataclasses.dataclass(frozen=True)
class Rates:
    low: float = 0.5
    kind: Kind = Kind.TWO
def outer():
    local, count = [], 0
    def bump():
        nonlocal count
        count += 1
    @functools.cache
    def cached():
        return count
    class OfClosures(Base):
        rates = Rates()
        add = staticmethod(functools.partial(local.append, 3))
        def check(self):
            super().__init__()
            self.add()
            bump()
            assert cached() == count == 1
            assert local == [3] and dataclasses.fields(self.rates)[1].name == "kind"
            assert self.rates.kind is Kind.TWO and Kind(1) is Kind.ONE and Own(1) is Own.A
            assert self.later is local and isinstance(self.rates, Rates)
    c = OfClosures()
    c.later = local
    return c

os.environ["CHOSEN"] = "yes"
os.chdir("/")
torch.set_num_threads(2)
random.seed(4)
torch.manual_seed(4)
state = torch.get_rng_state(), random.getstate()
def datasets():
    assert torch.equal(torch.get_rng_state(), state[0]) and random.getstate() == state[1]
    return samples, None
class OfTheProcess(Base):
    def check(self):
        assert (sys.argv[1], os.getcwd(), os.environ["CHOSEN"]) == ("an argument", "/", "yes")
        assert torch.get_num_threads() == 2

print("the script runs")
train([OfAModule(), OfGlobals(), outer(), OfTheProcess()], metrics=[lambda output, target: 1.0])
""",
    "optimizers and modules of the user's, tied weights, and schedulers": """
def seven(parameter):
    parameter.grad = torch.full((2,), 7.0)
class Mine(torch.optim.SGD):
    def __init__(self, parameters):
        super().__init__(parameters, 0.1)
        self.extra = 7
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(2, 2)
        self.two = parametrizations.weight_norm(torch.nn.Linear(2, 2))
        self.two.bias = self.one.bias
        self.register_buffer("view", self.one.weight.detach()[0])
        self.one.weight.register_hook(lambda gradient: gradient * 0)
        self.one.bias.register_post_accumulate_grad_hook(seven)
    def forward(self, inputs):
        return self.two(self.one(inputs))
model = Net()
optimizer = Mine(model.parameters())
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1)
class C(Base):
    def __init__(self):
        self.scheduler = scheduler
    def check(self):
        optimizer = self.params["optimizer"]
        assert optimizer.extra == 7 and self.scheduler.optimizer is optimizer
        assert self.model is model and model.two.bias is model.one.bias
        model(torch.ones(2)).sum().backward()
        assert not model.one.weight.grad.any() and model.one.bias.grad.tolist() == [7, 7]
        optimizer.zero_grad()
        assert model.view.data_ptr() == model.one.weight.data_ptr()
        assert optimizer.param_groups[0]["params"][0] is model.one.weight
train(C())
""",
}


@pytest.mark.parametrize("text", EXECUTORS_HAVE.values(), ids=EXECUTORS_HAVE.keys())
def test_executors_have(job: Job, text: str) -> None:
    done = job.run(text)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the script runs" not in done.stdout
    assert (job.folder / "model" / "train" / "model_epoch_final.pth").exists()
    assert job.results() == ["Begun", "StepDone", "StepDone", "EpochDone", "TrainingDone"]


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "c = Base()\nc.parts = {'w': threading.Lock()}\ntrain([c])",
            "user_callback[0].parts['w'] is a lock, which cannot be sent to the executors (",
        ),
        (
            """
log = open(os.devnull, 'w')
class C(Base):
    def check(self): print(1, file=log)
train(C())
""",
            "user_callback[0].check's global log is a TextIOWrapper",
        ),
        (
            """
def made():
    it = (i for i in range(3))
    return lambda: (it, None)
datasets = made()
train()
""",
            "datasets_function's it is a generator",
        ),
    ],
)
def test_what_cannot_be_pickled_is_named_in_the_driver(job: Job, text: str, said: str) -> None:
    done = job.drive(text)
    assert done.returncode != 0
    assert f"UnpicklableError: {said}" in done.stderr, done.stderr
    assert not list(job.training.path.glob("program*"))


def test_what_ends_the_training_is_sent_to_the_driver(job: Job) -> None:
    done = job.run("class C(Base):\n    def check(self): raise OSError('no data')\ntrain(C())")
    assert done.returncode == 1
    assert "OSError: no data" in done.stderr
    line = json.loads(job.sent.read_text())
    assert (line["is"], line["error"]) == ("Failed", f"{job.script}, line 30: OSError: no data")


def test_what_cannot_be_unpickled_is_named_in_the_executor(job: Job) -> None:
    done = job.run(
        "helper.last = helper.Refused('node1', 1)\nclass C(Base):\n    check = helper.grown\ntrain(C())"
    )
    assert done.returncode == 1
    said = "UnpicklableError: tools.helper.last cannot be unpickled in the executors (TypeError: "
    assert said in done.stderr, done.stderr
    assert "tools.helper.last cannot" in job.sent.read_text()


def test_a_host_without_the_working_directory_or_the_program_is_told(job: Job) -> None:
    own = job.folder / "own"
    driven = job.drive(f"os.mkdir({str(own)!r})\nos.chdir({str(own)!r})\ntrain()")
    assert "here, abc in the driver: the file was changed" in job.execute("abc").stderr
    own.rmdir()
    done = job.execute(driven.stdout.split()[-1])
    assert done.returncode == 1
    assert f"does not have {own}, the working directory of the script" in done.stderr
    job.training.program.unlink()
    assert "result folder; give a shared one with --result-dir" in job.execute("abc").stderr
