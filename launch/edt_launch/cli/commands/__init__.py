"""The commands of `edt`, one file each; imported only when they run."""
