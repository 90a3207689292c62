"""What the tabs of a job's page show."""
