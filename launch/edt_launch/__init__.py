"""The half around the training processes: what starts jobs, follows their allocation and shows them."""

__version__ = "0.1.0"
