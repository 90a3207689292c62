"""What a file that fails raises is what the caller of `torch_file.save` gets."""

import errno
from pathlib import Path

import pytest
import torch

from edt_hvd import torch_file

TREE = {"weights": torch.zeros(300_000)}


def test_a_full_disk_is_an_error_of_the_file() -> None:
    with (
        Path("/dev/full").open("wb", buffering=0) as file,
        pytest.raises(OSError, match="No space left") as caught,
    ):
        torch_file.save(TREE, file)
    assert caught.value.errno == errno.ENOSPC


def test_an_error_of_torch_is_not_taken_for_the_one_that_the_caller_handles(tmp_path: Path) -> None:
    shared = torch.zeros(2)
    tree = {"a": shared, "b": shared.view(torch.int32)}  # one storage, seen as two types
    with (tmp_path / "file").open("wb") as file:
        try:
            raise KeyError("what the caller handles")
        except KeyError:
            with pytest.raises(RuntimeError, match="view the same data"):
                torch_file.save(tree, file)


def test_what_torch_cannot_save_is_an_error_of_its_own(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file, pytest.raises(AttributeError, match="local object"):
        torch_file.save(lambda: None, file)
