"""The gradients of one optimizer: summed over micro-batches and workers."""
