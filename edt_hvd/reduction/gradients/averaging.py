"""Averaging gradients of backward passes outside the loop over a step, as Horovod's optimizer does."""

import horovod.torch as hvd
import numpy as np

from edt_hvd.reduction import agreement, participants
from edt_hvd.reduction.bits import fingerprint
from edt_hvd.reduction.gradients.layout import BucketT, Layout
from edt_hvd.reduction.header import Report
from edt_hvd.world import stages


def average(layout: Layout[BucketT], is_compared: bool) -> bool:
    """Average the gradients in ``.grad`` over the workers. A collective.

    Args:
        layout: of the parameters.
        is_compared: leave gradients alone, bit by bit, that are the same on every worker.

    Returns:
        Whether gradients were compared and differ.
    """
    absent: Report = np.array([parameter.grad is None for parameter in layout.parameters], dtype=np.int32)
    for bucket in layout.buckets:
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if parameter.grad is None:
                view.zero_()
            elif parameter.grad is not view:
                view.copy_(parameter.grad)
            parameter.grad = view
    compared = layout.buckets if is_compared and hvd.size() > 1 else []
    prints = np.array([fingerprint(bucket.flat) for bucket in compared], dtype=np.int64).view(np.int32)
    reports = agreement.exchange([absent, prints], describe=participants.describe).reports
    differ = bool((reports[1] != reports[1][0]).any())
    if hvd.size() > 1 and (differ or not compared):
        _average(layout, in_double=differ)
    for parameter, is_absent in zip(layout.parameters, reports[0].min(axis=0).tolist(), strict=True):
        if is_absent:
            parameter.grad = None
    return differ


def _average(layout: Layout[BucketT], in_double: bool) -> None:
    flats = [bucket.flat.double() if in_double else bucket.flat for bucket in layout.buckets]
    handles = [
        hvd.allreduce_async_(flat, name=f"{bucket.name}.average", op=hvd.Average)
        for flat, bucket in zip(flats, layout.buckets, strict=True)
    ]
    with stages.waiting_for_others():
        for bucket, handle in zip(layout.buckets, handles, strict=True):
            bucket.flat.copy_(hvd.synchronize(handle))
