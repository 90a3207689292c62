"""Where slots come from: this machine, host lists, and the allocation file that something else rewrites."""
