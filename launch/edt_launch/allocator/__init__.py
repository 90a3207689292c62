"""Who gets how many devices, and which: pure functions of (now, cluster, jobs)."""
