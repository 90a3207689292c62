"""examples/mnist.py, on scikit-learn's digits written in MNIST's own file format."""

import gzip
import re
from pathlib import Path

import pytest
import torch

from digits_as_mnist import write_digits
from tiers import full

# Nobody listens there, so that a download fails at once.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9") | {"no_proxy": ""}

pytest.importorskip("PIL")


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mnist data")
    write_digits(folder)
    return folder


@pytest.mark.parametrize("loader_workers", [full("0"), "2"])
def test_learns(run_example, data_dir, loader_workers):
    arguments = ("--epochs", "4", "--batch", "64", "--loader-workers", loader_workers)
    result = run_example("mnist.py", "--data-dir", str(data_dir), *arguments, **NO_NETWORK)
    assert result.returncode == 0, result.stderr
    assert float(re.findall(r"accuracy (\d\.\d+)", result.stdout)[-1]) > 0.8


def test_takes_the_data_of_an_experiment_and_leaves_its_model(run_example, data_dir, tmp_path):
    folders = {"DATA_DIR": str(data_dir), "EDT_MODEL_DIR": str(tmp_path / "model")}
    (tmp_path / "model").mkdir()
    result = run_example("mnist.py", "--epochs", "1", **folders, **NO_NETWORK)
    assert result.returncode == 0, result.stderr
    saved = torch.load(tmp_path / "model" / "mnist.pt", weights_only=True)
    assert saved["0.weight"].shape == (16, 1, 3, 3)


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
