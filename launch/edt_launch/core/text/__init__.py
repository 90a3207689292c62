"""Texts, as people write and read them."""
