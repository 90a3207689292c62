"""Jobs: their records, submission and states."""
