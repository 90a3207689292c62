"""The WMLA programs of tests/wmla_models as their users bring them, and what is known about each."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

MODELS = Path(__file__).parents[1] / "wmla_models"
SHIPPED = MODELS / "shipped"


@dataclass(frozen=True)
class Program:
    """A model directory: its script, what it ships besides, and the training that its arguments ask for."""

    name: str
    script: str
    ships: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    samples: int
    batch_size: int
    interval: int
    """Mini-batches in an effective batch."""
    epochs: int
    epochs_kept: tuple[int, ...]
    """Epochs that leave a checkpoint, besides the last."""
    printed: tuple[str, ...]
    """What the script prints when it is run, once."""
    tests: int = 0
    """Validations that its logger writes a line for."""
    onnx: str = ""

    @property
    def mini_batches(self) -> int:
        """Mini-batches in an epoch."""
        return -(-self.samples // self.batch_size)

    def bring(self, folder: Path) -> Path:
        """The whole model directory in `folder`; its script."""
        place = shutil.copytree(MODELS / self.name, folder / self.name, dirs_exist_ok=True)
        for name in ("storage.py", *self.ships):
            shutil.copy(SHIPPED / name, place)
        return place / self.script


IMAGES = Program(
    "images_fc",
    "images_fc.py",
    ships=("elog.py", "emetrics.py", "edtcallback.py"),
    arguments=("--epochs", "30", "--numWorker", "3", "--train_dir", "somewhere else"),
    environment=(),
    samples=244,
    batch_size=64,
    interval=3,
    epochs=30,
    epochs_kept=(5, 10, 15, 20, 25, 30),
    printed=("fabric is taken from its archive", "unknown: ['--train_dir', 'somewhere else']"),
    tests=30,
)
DIGITS = Program(
    "digits_strict",
    "main.py",
    ships=("elog.py", "edtcallback.py"),
    arguments=("--epochs", "8"),
    environment=(),
    samples=240,
    batch_size=8,
    interval=4,
    epochs=8,
    epochs_kept=tuple(range(1, 9)),
    printed=("digits: the script begins", "digits: the script ends"),
    tests=8,
)
STEPS = Program(
    "custom_steps",
    "main.py",
    ships=("elog.py", "edtcallback.py"),
    arguments=("--epochs", "12", "--numWorker", "9"),
    environment=(),
    samples=187,
    batch_size=8,
    interval=4,
    epochs=12,
    epochs_kept=(),
    printed=(),
    tests=2,
    onnx="model/train/*.onnx",
)
STATEFUL = Program(
    "stateful",
    "main.py",
    ships=(),
    arguments=("--epochs", "6", "--shift", "0.25"),
    environment=(),
    samples=240,
    batch_size=8,
    interval=4,
    epochs=6,
    epochs_kept=(),
    printed=(),
)
"""Trains three times; see its script."""
ONCE = Program(
    "once",
    "main.py",
    ships=(),
    arguments=("--epochs", "3"),
    environment=(),
    samples=244,
    batch_size=16,
    interval=3,
    epochs=3,
    epochs_kept=(1, 2, 3),
    printed=("once: the script ends",),
)
"""Does before `train()` what must not happen twice; see its script."""
ELASTIC = (IMAGES, DIGITS, STEPS)


def make_pictures(folder: Path) -> None:
    """244 small pictures to train on, 40 to validate, of two kinds in folders of their names."""
    from torchvision.utils import save_image  # takes as long as torch itself, of each process that collects

    generator = torch.Generator().manual_seed(0)
    for part, count in (("train", 244), ("val", 40)):
        for index in range(count):
            kind = ("ants", "bees")[index % 2]
            place = folder / part / kind
            place.mkdir(parents=True, exist_ok=True)
            image = torch.rand(3, 12, 12, generator=generator) * 0.5
            image[index % 2] += 0.3
            save_image(image, place / f"{index:03}.png")


def pack_pictures(folder: Path) -> None:
    """The pictures as an archive."""
    make_pictures(folder / "pictures")
    shutil.make_archive(str(folder / "pictures"), "zip", folder / "pictures")
