"""What programs of `torch.distributed` may import: more than torchrun gives them, in a line or two."""

from edt_hvd.torchrun.batch_size import accumulation, devices_and_nodes, fitting_sizes
from edt_hvd.torchrun.sampler import ElasticBatchSampler

__all__ = ["ElasticBatchSampler", "accumulation", "devices_and_nodes", "fitting_sizes"]
