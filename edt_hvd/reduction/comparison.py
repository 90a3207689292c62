"""Comparing what each worker has made by itself: models, optimizers, datasets.

Newcomers run the script from its beginning, and what they make must be what the others have. A digest of the
description is exchanged first; the descriptions follow only where digests differ, to name what does.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from edt_hvd.digests import PLAIN, digest
from edt_hvd.reduction import header
from edt_hvd.world import world

Description = Mapping[str, str]
"""What is compared, by what it is called in a message; in the order in which differences are looked for."""

MISSING = "missing"
_LONGEST = 300
"""Characters of a value that a message has, at most."""


def first_difference(description: Callable[[], Description], name: str) -> str | None:
    """What the first worker with another description than rank 0 has otherwise. A collective.

    Args:
        description: gives this worker's; asked only where there are others.
        name: of the collectives.

    Returns:
        A clause with both values and ranks, the same on every worker; None if all descriptions are equal.
    """
    if world.size() == 1:
        return None
    text = json.dumps(dict(description()))
    own = hashlib.blake2b(text.encode(), digest_size=8).digest()
    row = np.zeros(1, dtype=[("digest", np.int64), ("nbytes", np.int64)])
    row["digest"], row["nbytes"] = int.from_bytes(own, "little", signed=True), len(text)
    rows = header.gather(row, f"edt.{name}")
    if (rows["digest"] == rows["digest"][0]).all():
        return None
    sent = np.zeros(1, dtype=[("text", np.uint8, (-(-int(rows["nbytes"].max()) // 8) * 8,))])
    sent["text"][0, : len(text)] = np.frombuffer(text.encode(), dtype=np.uint8)
    received = header.gather(sent, f"edt.{name}.text")
    return difference([json.loads(bytes(each["text"]).rstrip(b"\0")) for each in received])


def difference(descriptions: Sequence[Description]) -> str | None:
    """As `first_difference`, from the descriptions of all workers."""
    first = descriptions[0]
    for rank, other in enumerate(descriptions):
        for what in {**first, **other}:
            here, there = first.get(what, MISSING), other.get(what, MISSING)
            if here != there:
                ours, theirs = _shortened(here, there)
                return f"{what} is {ours} on rank 0 and {theirs} on rank {rank}"
    return None


def form_of(tensor: torch.Tensor) -> str:
    """A tensor's type and shape."""
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def text_of(value: Any) -> str:
    """A value in a description; of an object that is neither plain nor a tensor, its type."""
    if isinstance(value, torch.Tensor):
        return f"{form_of(value)} {digest(value)}"
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text_of(key)}: {text_of(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(text_of, value))}]"
    return type(value).__qualname__


def _shortened(*texts: str) -> list[str]:
    """Texts that differ, cut to a message's length where they do."""
    common = len(os.path.commonprefix(texts))  # noqa: RUF071 - characters are compared, no paths
    begin = max(0, common - _LONGEST // 2) if max(map(len, texts)) > _LONGEST else 0
    return [
        f"{'...' * (begin > 0)}{text[begin : begin + _LONGEST]}{'...' * (len(text) > begin + _LONGEST)}"
        for text in texts
    ]
