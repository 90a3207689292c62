"""The samplers and iterators of torchelastic."""

from torch.distributed.elastic.utils.data import CyclingIterator as CyclingIterator
from torch.distributed.elastic.utils.data import ElasticDistributedSampler as ElasticDistributedSampler
