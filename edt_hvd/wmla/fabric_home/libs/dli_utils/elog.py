"""`from elog import ELog`, where a program does not bring its own."""

from edt_hvd.wmla.logs.elog import ELog

__all__ = ["ELog"]
