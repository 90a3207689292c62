"""Training from the kernel of a notebook: its own edt-launch, or the pool, runs the executors."""
