import importlib.util
import os

import numpy as np
import pytest
import torch
from torch import Tensor

from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda
from interpreters import Interpreters
from random_tensors import BITS, random_bits, random_ints

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.int32, torch.int64]
LIMITS = {torch.int32: 2.0**30, torch.int64: 2.0**51}


@pytest.fixture(scope="module")
def device() -> torch.device:
    """Where the kernel can run; the CPU in Triton's interpreter."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU; with TRITON_INTERPRET=1 the kernel runs in Triton's interpreter")
    return torch.device("cuda")


def accumulate(
    gradient: Tensor, factor: float, total: Tensor, limit: float, device: torch.device, largest: float = 0.0
) -> tuple[Tensor, float]:
    """What the kernel makes of total and largest."""
    found = total.to(device, copy=True)
    size = torch.tensor([largest], dtype=torch.float64, device=device)
    with np.errstate(all="ignore"):  # the interpreter computes in NumPy, which warns of infinities and NaN
        fixed_point_cuda.accumulate(gradient.to(device), factor, found, limit, size)
    return found.cpu(), size.item()


@pytest.mark.parametrize("floats", FLOATS, ids=str)
@pytest.mark.parametrize("ints", INTS, ids=str)
@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 5000])  # around the length of a block
def test_any_bits_give_the_bits_of_the_reference(
    device: torch.device, floats: torch.dtype, ints: torch.dtype, length: int
) -> None:
    gradient = random_bits(length, floats, seed=length)
    expected = random_ints(length, ints)
    for factor in (0.3, 2.0**40 / 3, 5e-324, 2.0**1023):
        found, largest = accumulate(gradient, factor, expected, LIMITS[ints], device)
        assert fixed_point.accumulate_reference(gradient, factor, expected, LIMITS[ints]) == largest
        assert torch.equal(found, expected)


@pytest.mark.parametrize("floats", FLOATS, ids=str)
@pytest.mark.parametrize("ints", INTS, ids=str)
def test_integers_become_the_same_floats(
    device: torch.device, floats: torch.dtype, ints: torch.dtype
) -> None:
    if floats == torch.bfloat16 and device.type == "cpu":
        pytest.skip("Triton's interpreter cuts off what bfloat16 cannot hold, where a GPU rounds")
    total = random_ints(5000, ints)
    for scale in (2.0**-30, 2.0**-70, 2.0**-160, 2.0**90, 2.0**-1040, 2.0**1000):
        expected = torch.empty(5000, dtype=floats)
        fixed_point.to_float_reference(total, scale, expected)
        found = torch.empty(5000, dtype=floats, device=device)
        with np.errstate(all="ignore"):
            fixed_point_cuda.to_float(total.to(device), scale, found)
        bits = BITS[floats.itemsize]
        assert torch.equal(found.cpu().view(bits), expected.view(bits))


def test_importing_needs_no_triton(interpreters: Interpreters) -> None:
    program = "import sys; sys.modules['triton'] = None; import edt_hvd.reduction.fixed_point.cuda"
    done = interpreters.run(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("floats", FLOATS, ids=str)
@pytest.mark.parametrize("ints", INTS, ids=str)
def test_several_parts_in_one_kernel_have_the_bits_of_one_after_the_other(
    device: torch.device, floats: torch.dtype, ints: torch.dtype
) -> None:
    lengths, starts = (1, 1025, 0, 3000), (5, 6, 1031, 1040)
    gradients = [random_bits(length, floats, seed=length) for length in lengths]
    factors, limits = (0.3, 2.0**40 / 3, 1.0, 2.0**20), (LIMITS[ints], 2.0, 1.0, 2.0**20)
    expected = random_ints(5000, ints)
    found, largest = expected.to(device, copy=True), torch.zeros(4, dtype=torch.float64, device=device)
    on_device = [each.to(device) for each in gradients]
    with np.errstate(all="ignore"):
        fixed_point_cuda.accumulate_parts(on_device, factors, found, starts, limits, largest)
    sizes = [
        fixed_point.accumulate_reference(each, factor, expected.narrow(0, start, each.numel()), limit)
        for each, factor, start, limit in zip(gradients, factors, starts, limits, strict=True)
    ]
    assert largest.tolist() == sizes
    assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("ints", INTS, ids=str)
def test_parts_with_scales_of_their_own_become_the_same_floats(
    device: torch.device, ints: torch.dtype
) -> None:
    total, starts, scales = random_ints(5000, ints), (0, 1, 1030, 1030, 4000), (1.0, 0.5, 2.0, 2.0**-70, 4.0)
    expected, found = torch.empty(5000), torch.empty(5000, device=device)
    for start, end, scale in zip(starts, (*starts[1:], 5000), scales, strict=True):
        fixed_point.to_float_reference(total[start:end], scale, expected[start:end])
    with np.errstate(all="ignore"):
        fixed_point_cuda.to_float_parts(total.to(device), starts, scales, found)
    assert torch.equal(found.cpu(), expected)
