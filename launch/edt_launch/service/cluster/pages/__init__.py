"""Pages of the pool, its hosts and its consumers."""
