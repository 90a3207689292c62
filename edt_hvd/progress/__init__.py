"""How far training is, as the launcher, a terminal and the job's starter are told."""
