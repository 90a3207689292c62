"""From every worker's gradients to one step of the optimizer."""
