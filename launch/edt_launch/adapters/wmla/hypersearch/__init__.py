"""Searches for hyperparameters: trials that are ordinary elastic jobs, in WMLA's `/hypersearch`."""
