"""What a script sets in modules that were installed, and what of it executors find there."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, threading
from pathlib import Path
import PIL.ImageFile, torch
import torch.nn.functional as F
from json import JSONEncoder
from PIL import Image
from torch.backends import cudnn
import seeding
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.channel import Address
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.schedule import Schedule

PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True
Image.MAX_IMAGE_PIXELS *= 2
torch.backends.cuda.matmul.allow_tf32, torch.backends.mkldnn.enabled = True, False
cudnn.benchmark: bool = True
F.relu = lambda x: 2 * x
JSONEncoder.item_separator = ';'
seeding.ssl.SSLContext.mine = staticmethod(seeding.twice)
sys.platform = 'mine'
PIL.Image.lock = threading.Lock()
torch.only_here = seeding

def setup():
    import ssl
    ssl._create_default_https_context = ssl._create_unverified_context

def never():
    import shlex as words
    words.lost = seeding.lost = PIL.Image.lost.lost = [ssl][0].lost = nowhere.lost = "a.b".lost = 1

def datasets():
    import ssl
    switches = sys.modules['torch.backends']
    return {
        'truncated': PIL.ImageFile.LOAD_TRUNCATED_IMAGES, 'pixels': Image.MAX_IMAGE_PIXELS,
        'tf32': switches.cuda.matmul.allow_tf32, 'benchmark': switches.cudnn.benchmark,
        'relu': F.relu(torch.ones(1)).item(), 'separator': JSONEncoder.item_separator,
        'ssl': ssl._create_default_https_context is ssl._create_unverified_context,
        'lock': hasattr(Image, 'lock'), 'deterministic': switches.cudnn.deterministic,
        'platform': sys.platform, 'mine': ssl.SSLContext().mine(2),
        'mkldnn': switches.mkldnn.enabled,
    }

setup()
seeding.seed()
model = torch.nn.Linear(1, 1)
program = Program(model, torch.optim.SGD(model.parameters(), lr=1), torch.nn.MSELoss(), datasets)
payload.write(Path(sys.argv[1]), payload.Payload(program, Schedule(1, 8, 16, 2), Address(('::1',), 7, 's')))
print(datasets())
"""

SEEDING = """
import ssl
import torch
def seed():
    torch.backends.cudnn.deterministic = True
def twice(value): return 2 * value
"""

EXECUTOR = """
import sys
from pathlib import Path
from edt_hvd.wmla.handing import payload
print(payload.read(Path(sys.argv[1])).program.datasets_function())
"""


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text(SCRIPT)
    (tmp_path / "seeding.py").write_text(SEEDING)
    return tmp_path / "main.py"


def test_executors_find_what_the_script_and_its_modules_have_set(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "training-1.pkl"
    driver = run("-m", "edt_hvd.wmla.script", script, path)
    assert driver.returncode == 0, driver.stderr
    executor = run("-c", EXECUTOR, path)
    assert executor.returncode == 0, executor.stderr
    here, there = eval(driver.stdout), eval(executor.stdout)
    assert here == {
        "truncated": True,
        "pixels": here["pixels"],
        "tf32": True,
        "benchmark": True,
        "relu": 2.0,
        "separator": ";",
        "ssl": True,
        "deterministic": True,
        "platform": "mine",
        "mine": 4,
        "mkldnn": False,
        "lock": True,
    }
    assert there == here | {"platform": sys.platform, "lock": False}
    (told,) = [line for line in driver.stderr.splitlines() if "is not sent" in line]
    assert "PIL.Image.lock is not sent to the executors, which have it as it was" in told
    assert "cannot be set" not in executor.stderr


def test_what_cannot_be_set_there_is_a_warning(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "training-1.pkl"
    (tmp_path / "lib" / "site-packages").mkdir(parents=True)
    library = tmp_path / "lib" / "site-packages" / "library.py"
    library.write_text("rate = 1\n")
    begin = f"import sys; sys.path.append({str(library.parent)!r})\nimport library\nlibrary.rate = 2\n"
    script.write_text(begin + SCRIPT)
    assert run("-m", "edt_hvd.wmla.script", script, path).returncode == 0
    library.unlink()
    executor = run("-c", EXECUTOR, path)
    assert executor.returncode == 0, executor.stderr
    assert (
        "library.rate cannot be set in an executor as the script has set it: No module named 'library'"
        in executor.stderr
    )
