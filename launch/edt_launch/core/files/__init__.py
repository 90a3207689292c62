"""Files that others write, read or replace meanwhile."""
