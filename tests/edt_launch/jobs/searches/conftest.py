from worlds import database_url, postgresql, store, world

__all__ = ["database_url", "postgresql", "store", "world"]
