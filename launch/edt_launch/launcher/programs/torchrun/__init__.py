"""Programs written for `torchrun`: its command line, the variables of its workers, its logs and error files."""
