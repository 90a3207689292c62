"""Where this worker stands, who is there besides, and what the launcher is told."""
