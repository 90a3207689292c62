"""The training of a program, in every executor."""
