"""What exact reduction costs and how exact it is, in three parts.

    python benchmarks/exact.py kernel
    python benchmarks/exact.py error
    edt-launch --min-np 2 --max-np 2 benchmarks/exact.py step
    edt-launch --min-np 2 --max-np 2 benchmarks/exact.py step --parameters 25e6 --micro 64 --rounds 8
    python benchmarks/exact.py kernel --device cuda

- `kernel`: the bandwidth of the kernels, on one thread, against memcpy moving as many bytes.
- `error`: the rounding error of sums over micro-batches, beside that of float32 summation.
- `step`: how much longer an optimizer step takes than with `reduction="ring"`, and how many bytes a worker
  hands to its all-reduces.

What is compared takes turns, block by block in the same process, so that whatever else the machine does meets
both alike; printed are the ratios of neighbouring blocks. `reduction/` says how each part measures.
"""

import argparse

from reduction import error, kernel, step

parser = argparse.ArgumentParser(description="Cost and error of exact reduction.")
parts = parser.add_subparsers(dest="part", required=True)
for part in (kernel, error, step):
    own = parts.add_parser(part.__name__.rpartition(".")[2], description=part.__doc__)
    part.add_arguments(own)
    own.set_defaults(run=part.run)
args = parser.parse_args()
args.run(args)
