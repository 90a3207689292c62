"""`edt-launch`: the driver, its connections to agents and workers, logs, view and restarts, in one process."""
