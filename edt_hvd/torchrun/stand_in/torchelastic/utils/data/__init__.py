"""The samplers and iterators of torchelastic."""

from torch.distributed.elastic.utils.data.cycling_iterator import CyclingIterator as CyclingIterator
from torch.distributed.elastic.utils.data.elastic_distributed_sampler import (
    ElasticDistributedSampler as ElasticDistributedSampler,
)
