"""How the workers of a generation find one another."""
