"""What pages of jobs show."""
