"""Observers of a worker: the recorder, whose records ``edt verify`` compares, and the fault injector."""
