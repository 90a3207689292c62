"""How fast this machine is at the moment, without which seconds of two runs cannot be compared."""

import timeit


def speed() -> str:
    """Additions a second in a loop of Python, in words."""
    millions = 10 / timeit.timeit("i = 0\nwhile i < 10_000_000: i += 1", number=1)
    return f"this machine: {millions:.1f} million additions of Python a second"
