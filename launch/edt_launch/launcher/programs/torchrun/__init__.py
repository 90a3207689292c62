"""Programs written for `torchrun`: its command line, its workers' variables, its logs and error files."""
