"""Random numbers that do not depend on the number of workers."""
