"""What jobs write: results, checkpoints, logs and metrics."""
