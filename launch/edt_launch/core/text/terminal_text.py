"""Texts from programs and strangers, without what would steer a terminal."""

import re

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""What steers a terminal (ECMA-48): control sequences, commands of the operating system, others."""


def without_sequences(text: str) -> str:
    """The text without colours and whatever else a terminal takes for a command."""
    return _SEQUENCE.sub("", text)


def visible(text: object) -> str:
    """One line of text; white space becomes blanks, and other characters that are not printed are marked."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
        for character in str(text)
    )
