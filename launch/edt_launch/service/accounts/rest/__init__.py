"""The REST interface of accounts."""
