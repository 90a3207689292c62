"""The half around the training processes: what starts jobs, follows their allocation and shows them."""

from edt_launch.core.system import environments

__version__ = "0.1.0"

environments.search_pythonpath_last()
