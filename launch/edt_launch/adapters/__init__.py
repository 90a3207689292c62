"""Interfaces of other systems, translated to those of EDT."""
