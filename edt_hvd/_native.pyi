from collections.abc import Callable

# By the names of (gradient, total) and of (total, out). Addresses stand for the tensors; the last two
# arguments are the length and the largest number of threads.
accumulate: dict[tuple[str, str], Callable[[int, float, int, float, int, int], float]]
to_float: dict[tuple[str, str], Callable[[int, float, int, int, int], None]]
