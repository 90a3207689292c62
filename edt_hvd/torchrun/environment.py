"""What torchrun tells a worker in its environment."""

import os


def rank_and_size() -> tuple[int, int]:
    """This worker's rank and the number of workers, by RANK and WORLD_SIZE; 0 of 1 where they are not set."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
