"""scikit-learn's digits in MNIST's own file format."""

import struct
from pathlib import Path
from typing import Any

import numpy as np


def write_digits(folder: Path) -> None:
    """Write the digits as MNIST: 8x8 pixels of 0..16 become 28x28 of 0..255; every fifth is for the test."""
    from sklearn.datasets import load_digits  # takes longer than to collect all tests of the pages

    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    digits = load_digits()
    images = np.pad(np.kron(digits.images, np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))) * 255 / 16
    is_test = np.arange(len(images)) % 5 == 0
    for name, part in (("train", ~is_test), ("t10k", is_test)):
        write_idx(raw / f"{name}-images-idx3-ubyte", images[part])
        write_idx(raw / f"{name}-labels-idx1-ubyte", digits.target[part])


def write_idx(path: Path, array: "np.ndarray[Any, Any]") -> None:
    """Write unsigned bytes as http://yann.lecun.com/exdb/mnist describes: 0, 0, type 8, rank, shape, data."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())
