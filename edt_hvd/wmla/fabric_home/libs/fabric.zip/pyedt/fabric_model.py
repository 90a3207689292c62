"""The same class as `fabric_model.FabricModel`."""

from edt_hvd.wmla import FabricModel

__all__ = ["FabricModel"]
