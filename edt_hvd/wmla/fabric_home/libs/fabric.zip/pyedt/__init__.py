"""`from pyedt.fabric_model import FabricModel`, as notebooks for WMLA write it."""
