"""Searches for parameters whose trials are ordinary elastic jobs."""
