"""examples/mnist.py, on scikit-learn's digits written in MNIST's own file format."""

import re
import runpy
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from digits_as_mnist import write_digits

SCRIPT = Path(__file__).parents[2] / "examples" / "mnist.py"

# Nobody listens there, so that a download fails at once.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9") | {"no_proxy": ""}

pytest.importorskip("PIL")


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mnist data")
    write_digits(folder)
    return folder


@pytest.mark.full
@pytest.mark.parametrize("loader_workers", ["0", "2"])
def test_learns_the_data_of_an_experiment_and_leaves_its_model(
    run_example, data_dir, tmp_path, loader_workers
):
    folders = {"DATA_DIR": str(data_dir), "EDT_MODEL_DIR": str(tmp_path / "model")}
    (tmp_path / "model").mkdir()
    arguments = ("--epochs", "3", "--batch", "64", "--loader-workers", loader_workers)
    result = run_example("mnist.py", *arguments, **folders, **NO_NETWORK)
    assert result.returncode == 0, result.stderr
    assert float(re.findall(r"accuracy (\d\.\d+)", result.stdout)[-1]) > 0.8
    saved = torch.load(tmp_path / "model" / "mnist.pt", weights_only=True)
    assert saved["0.weight"].shape == (16, 1, 3, 3)


@pytest.fixture
def ends_with(tmp_path, monkeypatch) -> Callable[..., str]:
    """Runs the script in this process, in an empty folder; what it says as it ends, before it trains."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATA_DIR", raising=False)
    for name, value in NO_NETWORK.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxies of its first request

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["mnist.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return str(ended.value)

    return run


def test_says_what_to_do_without_data_and_network(ends_with, tmp_path):
    said = ends_with("--data-dir", "empty")
    assert str(tmp_path / "empty" / "MNIST" / "raw") in said
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        assert name in said
