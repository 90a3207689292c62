"""Projects, training definitions, experiments and their runs."""
