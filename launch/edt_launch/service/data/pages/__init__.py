"""Pages of the data folder."""
