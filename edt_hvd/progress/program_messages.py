"""Messages of a program's workers to the process that had edt-launch start them."""

from edt_hvd.world import world
from edt_messages.messages import MAX_TEXT, ProgramMessage


def send(text: str) -> None:
    """Send a message; nothing happens without edt-launch, or when it is gone.

    Raises:
        ValueError: the text is too long.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"a message of {len(text):,} characters; at most {MAX_TEXT:,} are sent")
    launcher = world.current().launcher
    if launcher is not None:
        launcher.send(ProgramMessage(text))
