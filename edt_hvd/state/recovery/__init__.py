"""Going back to a commit after the loss of a worker."""
