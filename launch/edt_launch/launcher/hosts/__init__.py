"""The hosts of a job: connections to their agents, and the files that go there and come back."""
