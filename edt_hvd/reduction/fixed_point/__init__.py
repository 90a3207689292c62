"""Sums in fixed point, which do not depend on the order of their addends."""
