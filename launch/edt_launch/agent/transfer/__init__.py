"""The files of a job on a host that does not see its output directory."""
