from quick_passwords import quick_passwords
from worlds import database_url, postgresql, store, world

__all__ = ["database_url", "postgresql", "quick_passwords", "store", "world"]
