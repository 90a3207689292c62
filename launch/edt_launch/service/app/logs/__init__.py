"""The service's own log."""
