from numpy import float32, int64
from numpy.typing import NDArray

def accumulate(gradient: NDArray[float32], scale: float, total: NDArray[int64]) -> bool: ...
