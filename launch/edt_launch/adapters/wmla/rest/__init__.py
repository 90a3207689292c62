"""WMLA's REST interfaces, of 1.2.x and of 2.x: one router a file, put together in `app`."""
