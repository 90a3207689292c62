"""Pages of the pool, its hosts and the shares."""
