from pages import chromium, chromium_of_all, site

__all__ = ["chromium", "chromium_of_all", "site"]
