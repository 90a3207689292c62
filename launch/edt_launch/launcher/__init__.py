"""`edt-launch`: driver, connections to agents and workers, logs, view and restarts, in one process."""
