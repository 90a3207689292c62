"""Numbers of bytes, as commands and pages show them."""


def byte_size(count: float) -> str:
    """A number of bytes with at most one digit after the point, such as 12.3 kB."""
    unit, *larger = "B", "kB", "MB", "GB"
    while larger and count >= 999.5:
        count, unit, larger = count / 1000, larger[0], larger[1:]
    return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
