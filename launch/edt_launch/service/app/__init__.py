"""The service as a whole: its settings, its start and its end, and what its parts share."""
