"""The service's database: SQLite by default, PostgreSQL by URL."""
