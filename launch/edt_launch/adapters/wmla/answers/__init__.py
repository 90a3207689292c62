"""What WMLA's clients are told of a job, its processes and its files."""
