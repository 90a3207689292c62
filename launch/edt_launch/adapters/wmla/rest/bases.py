"""Where WMLA's interfaces are."""

CONDUCTOR = "/platform/rest/conductor/v1"
"""Spectrum Conductor's, of 1.2.x."""

DEEP_LEARNING = "/platform/rest/deeplearning/v1"
"""Deep Learning Impact's, of both generations."""

AUTH = "/auth/v1"
"""Where one logs on to 2.x."""

BASES = (CONDUCTOR, DEEP_LEARNING, AUTH)


def is_below(path: str) -> bool:
    """Whether a path belongs to one of them."""
    return any(path == base or path.startswith(f"{base}/") for base in BASES)
