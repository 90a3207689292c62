from browser import database_url

__all__ = ["database_url"]
