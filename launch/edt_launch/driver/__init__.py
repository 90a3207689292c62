"""What runs in horovodrun's place: the workers' rendezvous, their control connection, and their processes."""
