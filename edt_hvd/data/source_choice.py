"""Choosing the source of a dataset's batches, and what each makes of the loader's options."""

import warnings
from functools import partial
from typing import Any

from edt_hvd.data.fetching import Fetcher
from edt_hvd.data.indexed import IndexedSource
from edt_hvd.data.order import orders_of
from edt_hvd.data.source import Source
from edt_hvd.data.streams.stream import StreamSource
from edt_hvd.data.streams.stream_reading import as_read, is_stream

_ORDER_OPTIONS = ("effective_batch_size", "sampler", "batch_sampler", "shuffle", "drop_last")
"""Options that say what an epoch's batches are; the others say how they are fetched."""


def source_of(dataset: Any, micro_batch_size: int | None, options: dict[str, Any]) -> Source:
    """The source of a dataset's batches.

    Args:
        dataset: map-style, or a stream.
        micro_batch_size: as for `edt_hvd.ElasticDataLoader`.
        options: its others but `seed`, by name.

    Raises:
        TypeError, ValueError: as `edt_hvd.ElasticDataLoader`.
    """
    order = {name: options.pop(name) for name in _ORDER_OPTIONS}
    snapshot_every_n_steps = options.pop("snapshot_every_n_steps")
    if not is_stream(dataset):
        if snapshot_every_n_steps is not None:
            raise TypeError(
                f"snapshot_every_n_steps={snapshot_every_n_steps} is for streams, and a "
                f"{type(dataset).__name__} has its samples by number; leave it out"
            )
        orders = orders_of(dataset, micro_batch_size=micro_batch_size, **order)
        return IndexedSource(dataset, orders, micro_batch_size, partial(Fetcher, **options))
    given = [name for name in ("sampler", "batch_sampler", "shuffle") if order[name] not in (None, False)]
    if given:
        raise TypeError(
            f"{given[0]} given with a {type(dataset).__name__}, a stream, whose samples have no numbers "
            "to be drawn by; leave it out, and shuffle within the stream"
        )
    if options["num_workers"] > 1:
        warnings.warn(
            f"num_workers={options['num_workers']}: a stream is read by one loading process, because its "
            "order is one; pass num_workers=1",
            stacklevel=3,
        )
        options["num_workers"] = 1
    return StreamSource(
        dataset,
        order["effective_batch_size"],
        micro_batch_size,
        order["drop_last"],
        snapshot_every_n_steps,
        options.pop("collate_fn"),
        partial(Fetcher, **options, collate_fn=as_read),
    )
