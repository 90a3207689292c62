"""What has happened to a job: events, their file, and what is folded from them."""
