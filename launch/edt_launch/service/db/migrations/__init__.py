"""Migrations of the database, run when the service starts; written by hand, newest last."""
