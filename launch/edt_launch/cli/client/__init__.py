"""The service, as commands ask it."""
