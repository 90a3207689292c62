"""What a job's user sees of it."""
