"""A job service that is attacked, and what others notice of it: for tests and for `attacks.py`."""
