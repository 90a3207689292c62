"""The user's home directory, which in a container there may not be."""

from pathlib import Path

NO_HOME = "you have no home directory: HOME is not set, and the system has no entry for your user"
HOME_ADVICE = "set HOME or EDT_HOME"


def expanded(path: str | Path) -> Path | None:
    """The path with the home directory in place of `~`; None if it needs one, and there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # as Path.expanduser() says it
        return None
