"""`from callbacks import Callback, LoggerCallback`, as programs for WMLA write it."""

from edt_hvd.wmla import Callback, LoggerCallback

__all__ = ["Callback", "LoggerCallback"]
