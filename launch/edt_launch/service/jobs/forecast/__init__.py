"""What a change would do to other jobs, and what happens next."""
