"""Replays of workload traces, by the functions that the service decides with and by baselines."""
