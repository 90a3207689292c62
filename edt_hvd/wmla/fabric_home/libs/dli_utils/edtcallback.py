"""`from edtcallback import EDTLoggerCallback`, where a program does not bring its own."""

from edt_hvd.wmla.logs.loggers import DefaultLogger as EDTLoggerCallback

__all__ = ["EDTLoggerCallback"]
