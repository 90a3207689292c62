"""The database: connections, tables and migrations."""
