"""What programs of `torch.distributed` may import under `edt torchrun`, and what prepares their workers.

================  ==================================================================
`snapshots`       the program's state in memory, for the workers after a resize
`sampler`         a batch sampler that resumes inside an epoch on any number of ranks
`batch_size`      accumulation that keeps the total batch
`store`           where the workers of a generation find one another
`worker`          what a forked worker does besides its program: the gate, the holds
`saves`           which functions write checkpoints
`launcher_link`   the connection to the launcher
`site`            prepares workers that are not forked
`stand_in`        modules called `torchelastic`, for programs as old as that
================  ==================================================================
"""

from edt_hvd.torchrun.batch_size import accumulation, devices_and_nodes, fitting_sizes
from edt_hvd.torchrun.sampler import ElasticBatchSampler
from edt_hvd.torchrun.snapshots import latest_snapshot, snapshot

__all__ = [
    "ElasticBatchSampler",
    "accumulation",
    "devices_and_nodes",
    "fitting_sizes",
    "latest_snapshot",
    "snapshot",
]
