"""What everything else in edt_launch is built on: errors, events, paths, files."""
