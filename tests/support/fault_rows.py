"""Fault scripts of rows."""


def fault_script(*rows: str) -> str:
    """The text of a script with these rows, each an inline table in TOML."""
    return "\n".join(["faults = [", *(f"    {row}," for row in rows), "]\n"])
