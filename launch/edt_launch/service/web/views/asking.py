"""What pages show that ask before something is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_FORESEEN = 8
"""Most changes of other jobs that a question lists."""


@dataclass(frozen=True)
class Field:
    """A field of a form; with `options`, values and how they are shown, one of them is chosen.

    `secret` is what a password field is for, as `autocomplete` has it: `new-password`, or `current-password`.
    """

    name: str
    label: str
    value: str
    is_number: bool = True
    options: Sequence[tuple[str, str]] = ()
    secret: str = ""


@dataclass(frozen=True)
class Question:
    """A question before something is done.

    Attributes:
        verb: what is done, to what has the `name`.
        effect: what that does.
        address: where it is done; `back` is where one comes from.
        hidden: fields that are sent along.
        error: what was wrong with what the form was sent with; empty if nothing was.
        button: what is on the button; empty: the verb.
        can_foresee: whether there is a button that only says what would change.
    """

    verb: str
    name: str
    effect: Sequence[str]
    address: str
    back: str
    fields: Sequence[Field] = ()
    hidden: Sequence[tuple[str, str]] = ()
    error: str = ""
    button: str = ""
    can_foresee: bool = False


def foreseen(changes: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Changes of jobs' sizes in sentences; None: nobody can say."""
    if changes is None:
        return []
    sentences = [
        f"{one['name'] or one['job']} of {one['owner']} goes from {one['from']} to {one['to']}."
        for one in changes[:MOST_FORESEEN]
    ]
    more = len(changes) - len(sentences)
    return [*sentences, *([f"So do {more} more."] if more else [])] or ["No other job changes by that now."]
