"""What pages of the pool show."""
