"""The training state: commit, rollback, transfer to newcomers, and checkpoints on disk.

====================  =====================================================================
`torch_state`         `TorchState`, the only name that other packages import
`contents`            its objects and plain values, and loading them
`recovery`            going back to a commit after the loss of a worker
`snapshot`            full copies in host memory
`checkpointing`       when copies are written to disk
`transfer`, `flat`    sending the state to newcomers
`tree`                the values of a state as trees: `state_dicts`, `module_walk`
`compatibility`       whether a saved state fits
`structure`           what objects are made of: parameters, buffers, parameter groups; `structure_watch`
`plain_values`        values without a state of their own
`checkpoint`          the state on disk
====================  =====================================================================
"""

from edt_hvd.state.torch_state import TorchState

__all__ = ["TorchState"]
