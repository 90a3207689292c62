"""Handing a script, and what it has put where, to the executors of its training."""
