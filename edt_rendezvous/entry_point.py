"""What the entry point names. All that import `torch.distributed.elastic` load it, so it imports nothing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import (
        RendezvousHandler,
        RendezvousHandlerCreator,
        RendezvousParameters,
    )


def handler() -> "RendezvousHandlerCreator":
    """What torchrun makes the handler with."""
    return _create


def _create(params: "RendezvousParameters") -> "RendezvousHandler":
    from edt_rendezvous.handler import create

    return create(params)
