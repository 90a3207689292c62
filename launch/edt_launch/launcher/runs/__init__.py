"""One job and its runs: how each begins and ends, what becomes of it, and who is told."""
