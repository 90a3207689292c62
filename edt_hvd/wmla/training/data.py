"""A program's datasets, and what its batches look like."""

import contextlib
import errno
import fcntl
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from torch.utils._pytree import tree_map

import edt_hvd
from edt_hvd.wmla.train_config import TrainConfig


class Datasets(NamedTuple):
    """What `datasets_function` returned.

    Attributes:
        train: a map-style dataset with at least one sample.
        test: the same, or None when there is nothing to validate with.
    """

    train: Any
    test: Any


def make_datasets(function: Callable[[], Any], result_dir: Path | None) -> Datasets:
    """Call `datasets_function`; the first process of a job does it alone, because it may download.

    Raises:
        TypeError, ValueError: what it returned cannot be trained with.
    """
    with _turn(result_dir):
        found = function()
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise TypeError(
            f"datasets_function returned a {type(found).__name__}; return (train_dataset, test_dataset)"
        )
    train, test = found
    for name, dataset in (("train", train), ("test", test)):
        if dataset is not None and not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise TypeError(
                f"datasets_function returned a {name} set of type {type(dataset).__name__}, which has no "
                "samples by number; return map-style datasets, with __getitem__ and __len__"
            )
    if train is None or not len(train):
        raise ValueError(
            "datasets_function returned a train set without samples; is DATA_DIR the right folder?"
        )
    return Datasets(train, test if test is not None and len(test) else None)


@contextlib.contextmanager
def _turn(result_dir: Path | None) -> Iterator[None]:
    """Around what the first process of a job has to itself, and all others do together after it."""
    if result_dir is None:
        yield
        return
    folder = result_dir / "run" / "wmla"
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "datasets.made"
    with (folder / "datasets.lock").open("a+") as file:  # locks over NFS take a file that is writable
        if not done.exists():
            _lock(file, fcntl.LOCK_EX)
        if done.exists():
            _lock(file, fcntl.LOCK_UN)
        yield
        done.touch()


def _lock(file: IO[str], how: int) -> None:
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):  # file systems without locks
            raise


class TrainingLoader(edt_hvd.ElasticDataLoader):
    """What a `fn_step_train` gets as the loader, with what it may ask torch's own for."""

    @property
    def batch_size(self) -> int:
        """Samples of a mini-batch."""
        return self.micro_batch_size


def training_loader(dataset: Any, config: TrainConfig, collate: Any) -> TrainingLoader:
    """Loads the training set in mini-batches of exactly `batch_size`, whatever the number of executors."""
    loader = TrainingLoader(
        dataset,
        config.effective_batch_size,
        config.batch_size,
        seed=config.seed,
        **loading(config, collate),
    )
    rewind(loader, config, epoch=0)
    return loader


def test_loader(dataset: Any, config: TrainConfig, collate: Any) -> edt_hvd.ElasticDataLoader:
    """Loads the test set in order, in one step: there is one reduction, whatever its size."""
    one_step = config.batch_size * -(-len(dataset) // config.batch_size)
    return edt_hvd.ElasticDataLoader(
        dataset,
        one_step,
        config.batch_size,
        seed=config.seed,
        shuffle=False,
        **loading(config, collate),
    )


def rewind(loader: edt_hvd.ElasticDataLoader, config: TrainConfig, epoch: int) -> None:
    """Begin that epoch, in mini-batches of `batch_size` also where there may be more workers than of them."""
    position = {"epoch": epoch, "step": 0, "micro_batch_size": config.batch_size}
    loader.load_state_dict({**loader.state_dict(), **position})


def loading(config: TrainConfig, collate: Any) -> dict[str, Any]:
    """Options of every loader, torch's own or `edt_hvd`'s."""
    options: dict[str, Any] = {"num_workers": config.num_dataloader_threads, "collate_fn": collate}
    options["pin_memory"] = torch.cuda.is_available()
    if config.num_dataloader_threads and "fork" in multiprocessing.get_all_start_methods():
        # Other ways to start processes would run the script once more in each.
        options["multiprocessing_context"] = "fork"
    return options


def inputs_and_target(data: Any) -> tuple[tuple[Any, ...], Any]:
    """A batch as the model's arguments and the loss function's target.

    Raises:
        TypeError: a batch that is no sequence of inputs and a target.
    """
    if isinstance(data, Mapping) or not isinstance(data, Sequence) or len(data) < 2:
        raise TypeError(
            f"a batch is a {type(data).__name__}; have the datasets return samples (input, target), or give "
            "FabricModel a fn_step_train and a fn_test that understand them"
        )
    return tuple(data[:-1]), data[-1]


def moved(data: Any, device: torch.device) -> Any:
    """The data with every tensor in it on `device`, in containers and whatever has `to`."""
    return tree_map(
        lambda each: each.to(device) if hasattr(each, "to") else each,
        data,
        is_leaf=lambda each: hasattr(each, "to"),
    )


def result_dir() -> Path | None:
    """The job's folder, if there is one."""
    return Path(os.environ["RESULT_DIR"]) if "RESULT_DIR" in os.environ else None
