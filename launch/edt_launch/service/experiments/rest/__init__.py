"""The REST interface of projects, definitions, experiments and runs."""
