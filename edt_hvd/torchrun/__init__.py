"""What programs of `torch.distributed` may import under `edt torchrun`, and what prepares their workers.

=============  =====================================================================
`store`        where the workers of a generation find one another
`worker`       what a forked worker does before its program: the gate, and the hooks
=============  =====================================================================
"""
