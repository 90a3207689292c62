"""Running the workers of one run as `membership` decides."""
