"""How an agent is invited, and which other hosts it reaches."""
