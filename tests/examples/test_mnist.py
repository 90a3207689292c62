"""examples/mnist.py, on scikit-learn's digits written in MNIST's own file format."""

import gzip
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tiers import full

# Nobody listens there, so that a download fails at once.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9") | {"no_proxy": ""}

pytest.importorskip("PIL")


def write_idx(path: Path, array: np.ndarray) -> None:
    """Write unsigned bytes as http://yann.lecun.com/exdb/mnist describes: 0, 0, type 8, rank, shape, data."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory) -> Path:
    """The digits as MNIST: 8x8 pixels of 0..16 become 28x28 of 0..255; every fifth one is for the test."""
    folder = tmp_path_factory.mktemp("mnist data")
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    digits = load_digits()
    images = np.pad(np.kron(digits.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))) * 255 / 16
    is_test = np.arange(len(images)) % 5 == 0
    for name, part in (("train", ~is_test), ("t10k", is_test)):
        write_idx(raw / f"{name}-images-idx3-ubyte", images[part])
        write_idx(raw / f"{name}-labels-idx1-ubyte", digits.target[part])
    return folder


@pytest.mark.parametrize("loader_workers", [full("0"), "2"])
def test_learns(run_example, data_dir, loader_workers):
    arguments = ("--epochs", "4", "--batch", "64", "--loader-workers", loader_workers)
    result = run_example("mnist.py", "--data-dir", str(data_dir), *arguments, **NO_NETWORK)
    assert result.returncode == 0, result.stderr
    assert float(re.findall(r"accuracy (\d\.\d+)", result.stdout)[-1]) > 0.8


def test_says_what_to_do_without_data_and_network(run_example, tmp_path):
    result = run_example("mnist.py", "--data-dir", "empty", **NO_NETWORK)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "empty" / "MNIST" / "raw") in result.stderr
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        assert name in result.stderr


def test_packed_files_of_another_content_are_refused(run_example, tmp_path):
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"not the digits"))
    result = run_example("mnist.py", **NO_NETWORK)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
