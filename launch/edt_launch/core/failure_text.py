"""What the text of a job's failure says in short."""


def cause(failure: str | None) -> str:
    """The line of a failure's text that says most in few words; empty if there is no text."""
    lines = (failure or "").splitlines()
    for begin in ("cause: ", "first failure: "):
        for line in lines:
            if line.startswith(begin):
                return line.removeprefix(begin)
    return lines[0] if lines else ""
