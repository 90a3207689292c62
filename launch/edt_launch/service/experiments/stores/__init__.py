"""What is stored of projects, definitions, experiments and runs."""
