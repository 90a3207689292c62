from pages import chromium, site

__all__ = ["chromium", "site"]
