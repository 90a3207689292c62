"""Runs a program with an `ElasticBatchSampler` unchanged, and writes down the samples of every step.

Each rank of each world has a file of its own in the folder JOURNAL: a line for each batch that the program is
given, with the world's number, the epoch, the position at which the step begins, and the samples.
"""

import os
import runpy
import sys
from collections.abc import Iterator

import edt_hvd.torchrun


class Journal(edt_hvd.torchrun.ElasticBatchSampler):
    """The sampler, with a journal. A program that reads ahead would have wrong positions in it."""

    def __iter__(self) -> Iterator[list[int]]:
        for batch in super().__iter__():
            with open(f"{os.environ['JOURNAL']}/samples.{os.getpid()}", "a") as file:
                print(os.environ["EDT_GENERATION"], self.epoch, self.position, *batch, file=file)
            yield batch


edt_hvd.torchrun.ElasticBatchSampler = Journal  # type: ignore[misc]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
