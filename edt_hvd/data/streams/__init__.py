"""Datasets that give their samples one after another."""
