"""One training from its first worker to its last: horovodrun supervised, and the decisions around it."""
