"""The utilities of torchelastic."""

from torch.distributed.elastic.utils import get_env_variable_or_raise as get_env_variable_or_raise
from torch.distributed.elastic.utils import get_socket_with_port as get_socket_with_port
from torch.distributed.elastic.utils import macros as macros
