"""How a total batch is kept while the number of workers changes: by gradient accumulation."""

import os

from edt_hvd.torchrun.environment import rank_and_size


def fitting_sizes(total: int, per_device: int, largest: int) -> list[int]:
    """The numbers of workers up to `largest` with which batches of `per_device` make up `total` samples."""
    return [size for size in range(1, largest + 1) if total % (per_device * size) == 0]


def accumulation(total: int, per_device: int, world_size: int | None = None) -> int:
    """Batches that each worker accumulates for one optimizer step, so that the step has `total` samples.

    Args:
        total: samples of an optimizer step, over all workers.
        per_device: samples of a batch of one worker.
        world_size: number of workers; by default the variable WORLD_SIZE, or 1.

    Raises:
        ValueError: no number of batches makes up the total; the message has the numbers of workers that fit.
    """
    size = rank_and_size()[1] if world_size is None else world_size
    for name, value in {"total": total, "per_device": per_device, "world_size": size}.items():
        if value < 1:
            raise ValueError(f"{name}={value}: expected 1 or more")
    if total % (per_device * size):
        fitting = ",".join(map(str, fitting_sizes(total, per_device, max(size, total // per_device))))
        raise ValueError(
            f"a total batch of {total} cannot be made of batches of {per_device} on {size} workers; "
            + (
                f"it can on {fitting} workers: allow the job these sizes alone"
                if fitting
                else "choose a smaller one"
            )
        )
    return total // (per_device * size)


def devices_and_nodes() -> dict[str, int]:
    """The arguments `devices` and `num_nodes` of Lightning's `Trainer`, as torchrun's environment has them.

    Raises:
        ValueError: nodes have different numbers of workers, which Lightning does not know.
    """
    size, local = rank_and_size()[1], int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if size % local:
        raise ValueError(
            f"LOCAL_WORLD_SIZE={local} does not divide WORLD_SIZE={size}: Lightning needs the same number of "
            "workers on every node"
        )
    return {"devices": local, "num_nodes": size // local}
