import torch
from torch import nn

from edt_hvd.reduction.gradients.layout import cut


def test_buckets_follow_backward_order_and_respect_size_and_type() -> None:
    sizes = [4, 4, 4, 100, 1]
    parameters = [nn.Parameter(torch.zeros(n)) for n in sizes]
    parameters[1] = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    groups = cut(parameters, bucket_bytes=32)
    assert [[(p.numel(), p.dtype) for p in group] for group in groups] == [
        [(1, torch.float32)],
        [(100, torch.float32)],
        [(4, torch.float32), (4, torch.float32)],
        [(4, torch.float64)],
    ]
