"""Where the service's devices come from: `sources.choose` finds out."""
