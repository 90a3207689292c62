"""What programs of `torch.distributed` may import under `edt torchrun`, and what prepares their workers.

================  ==================================================================
`snapshots`       the program's state in memory, for the workers after a resize
`store`           where the workers of a generation find one another
`worker`          what a forked worker does besides its program: the gate, the holds
`saves`           which functions write checkpoints
`launcher_link`   the connection to the launcher
`site`            prepares workers that are not forked
`stand_in`        modules called `torchelastic`, for programs as old as that
================  ==================================================================
"""

from edt_hvd.torchrun.snapshots import latest_snapshot, snapshot

__all__ = ["latest_snapshot", "snapshot"]
