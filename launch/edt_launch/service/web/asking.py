"""What pages show that ask before something is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field of a form; with `options`, values and how they are shown, one of them is chosen.

    `secret` is what a password field is for, as `autocomplete` has it: `new-password`, or `current-password`.
    `suggested` are values that can be written in it, with a name where the value is an id.
    """

    name: str
    label: str
    value: str
    is_number: bool = True
    options: Sequence[tuple[str, str]] = ()
    secret: str = ""
    is_required: bool = False
    suggested: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Question:
    """A question before something is done.

    Attributes:
        verb: what is done, to what has the `name`.
        effect: what that does.
        back: where one comes from.
        hidden: fields that are sent along.
        error: what was wrong with what the form was sent with; empty if nothing was.
        button: what is on the button; empty: the verb.
        can_foresee: whether there is a button that only says what would change.
        command: does the same in a terminal; empty if there is none.
        is_possible: whether it can be done now; else there is no button for it, and `effect` says why.
        undo: address of the action that undoes it, which is offered when it is done; empty if there is none.
    """

    verb: str
    name: str
    effect: Sequence[str]
    back: str
    fields: Sequence[Field] = ()
    hidden: Sequence[tuple[str, str]] = ()
    error: str = ""
    button: str = ""
    can_foresee: bool = False
    command: str = ""
    is_possible: bool = True
    undo: str = ""


def overtaken(
    told: str, labels: Mapping[str, str], given: Mapping[str, str], present: Mapping[str, str]
) -> str:
    """What is said to somebody whose change came second: `told`, and which values are different now.

    `labels` are the names of the fields that are compared.
    """
    other = [
        f"{label} {present[name] or 'empty'} (yours: {given[name] or 'empty'})"
        for name, label in labels.items()
        if present[name] != given[name]
    ]
    if not other:
        return f"{told}. What you have written is no different from it."
    return f"{told}. It is now: {', '.join(other)}. Saving again puts yours in its place."
