"""Commands beside the service: simulate, verify, doctor, demo, discover."""
