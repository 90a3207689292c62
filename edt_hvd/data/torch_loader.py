"""Taking over what a loader of torch's says."""

from collections.abc import Mapping
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from edt_hvd.data.streams.stream_reading import is_stream

_TAKEN = (
    "num_workers",
    "pin_memory",
    "worker_init_fn",
    "prefetch_factor",
    "multiprocessing_context",
    "timeout",
    "persistent_workers",
)


def options_from_dataloader(
    loader: DataLoader[Any], options: Mapping[str, Any]
) -> tuple[Dataset[Any], dict[str, Any]]:
    """The dataset and the options of a torch loader, for `edt_hvd.ElasticDataLoader`.

    Args:
        loader: made for one process, so that its batch is the effective batch.
        options: those given besides; `effective_batch_size` takes the place of the loader's ``batch_size``.

    Raises:
        TypeError: an option that the loader has, too, or one of the loader's that means nothing here.
    """
    given = [name for name, value in options.items() if value and name != "effective_batch_size"]
    if given:
        raise TypeError(
            f"{', '.join(given)} given besides a DataLoader; give it to the DataLoader, or pass the dataset "
            "with all options to ElasticDataLoader"
        )
    if loader.generator is not None:
        raise TypeError(
            "the DataLoader has a generator; leave it out, and pass ElasticDataLoader a seed instead"
        )
    collate = None if loader.collate_fn is default_collate else loader.collate_fn
    taken = {name: getattr(loader, name) for name in _TAKEN} | {"collate_fn": collate}
    return loader.dataset, {**options, **taken, **_order(loader, options["effective_batch_size"])}


def _order(loader: DataLoader[Any], effective_batch_size: int | None) -> dict[str, Any]:
    batch_size, sampler, drop_last = loader.batch_size, loader.sampler, loader.drop_last
    if batch_size is None:  # the loader makes no batches itself
        batches = loader.batch_sampler
        if batches is None:
            raise TypeError(
                "the DataLoader has batch_size=None, so it makes no batches; give it a batch_size"
            )
        if type(batches) is not BatchSampler:
            if effective_batch_size is not None:
                raise TypeError(
                    "the DataLoader has a batch_sampler, which makes the batches; "
                    "leave effective_batch_size out"
                )
            return {"batch_sampler": batches}
        batch_size, sampler, drop_last = batches.batch_size, batches.sampler, batches.drop_last
    size = batch_size if effective_batch_size is None else effective_batch_size
    order: dict[str, Any] = {"effective_batch_size": size, "drop_last": drop_last}
    if is_stream(loader.dataset):
        return order | {"snapshot_every_n_steps": getattr(loader, "snapshot_every_n_steps", None)}
    if type(sampler) is SequentialSampler:
        return order | {"shuffle": False}
    if type(sampler) is RandomSampler and not sampler.replacement and sampler._num_samples is None:
        return order | {"shuffle": True}
    return order | {"sampler": sampler}
