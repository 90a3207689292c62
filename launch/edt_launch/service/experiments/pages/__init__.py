"""Pages of projects, definitions, experiments and searches."""
