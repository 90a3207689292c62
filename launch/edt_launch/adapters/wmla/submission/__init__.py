"""From the argument string that WMLA's clients send to a job."""
