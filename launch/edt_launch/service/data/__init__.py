"""The data folder: what is in it, and the data sets that users upload into it."""
