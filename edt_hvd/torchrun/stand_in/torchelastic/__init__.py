"""Stands in for the package `torchelastic`, which became `torch.distributed.elastic`."""
