"""The REST interface: one router a file, put together in `app`."""
