"""The REST interface of jobs' files."""
