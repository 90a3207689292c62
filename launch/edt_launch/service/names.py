"""What names and texts that users give may be made of."""

USER = r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}"
"""Users, and other nodes of the owners' tree."""

OWNER = rf"{USER}(~[0-9]{{1,10}})?"
"""Owners of jobs; what is left of the first removed user `ann` belongs to ``ann~1``."""

OWNERS = rf" *{OWNER}( *, *{OWNER})* *"
"""Several of them, with commas between."""

ROOT = "-"
"""Stands for the tree's root, whose name is empty, where a name must not be."""

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
"""Environment variables."""

TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
"""Tags of jobs."""

MAX_NAME = 128
"""Characters of a job's name."""

PLAIN = r"[^\x00-\x1f\x7f]*"
"""A line of text that every database and terminal can take."""

TEXT = r"[^\x00]*"
"""Any text that every database and process can take."""
