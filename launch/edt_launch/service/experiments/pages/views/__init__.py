"""What pages of projects, definitions, experiments and searches show."""
