"""The notebook, if this process is the kernel of one."""

import sys
from typing import Any


def kernel_shell() -> Any:
    """IPython's shell in this kernel; None where there is no kernel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell if hasattr(shell, "kernel") else None
