"""The REST interface of jobs."""
