"""What pages of accounts show."""
