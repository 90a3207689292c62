"""Workers whose world Horovod's own driver assigns."""
