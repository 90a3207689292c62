"""`from emetrics import EMetrics`, where a program does not bring its own."""

from edt_hvd.wmla import EMetrics

__all__ = ["EMetrics"]
