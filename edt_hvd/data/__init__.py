"""An epoch's samples, cut so that no number of workers changes what is learned."""
