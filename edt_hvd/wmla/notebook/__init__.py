"""Training from the kernel of a notebook: its own edt-launch runs executors, which run the cells again."""
