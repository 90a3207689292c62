"""Hosts, shares, and who had which device when."""
