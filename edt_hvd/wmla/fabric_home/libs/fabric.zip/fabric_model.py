"""`from fabric_model import FabricModel`, as programs for WMLA write it."""

from edt_hvd.wmla import FabricModel

__all__ = ["FabricModel"]
