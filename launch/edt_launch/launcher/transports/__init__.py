"""How the agents of other hosts are started."""
