"""Who is told what a worker does: the recorder that ``edt verify`` compares, and faults on purpose."""
