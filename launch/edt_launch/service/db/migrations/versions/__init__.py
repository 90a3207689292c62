"""One file a migration. Released ones never change."""
