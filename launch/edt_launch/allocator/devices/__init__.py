"""Which devices jobs get."""
