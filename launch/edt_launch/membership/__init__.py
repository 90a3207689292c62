"""The membership protocol of a job's workers, as pure functions."""
