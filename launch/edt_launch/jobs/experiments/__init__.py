"""Experiments: searches for parameters whose trials are ordinary elastic jobs."""
