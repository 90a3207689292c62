"""Where the launcher's folders and interpreter are on a host with a disk of its own: pure decisions."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

OWN = ("HOME", "USER", "LOGNAME", "SHELL", "XDG_RUNTIME_DIR")
"""Variables that are the host's own."""


@dataclass(frozen=True)
class Places:
    """`moved` maps folders of the launcher's host to those that stand for them here; both are absolute."""

    moved: Mapping[str, str]

    def path(self, path: str) -> str:
        """Where a path of the launcher's host is here: elsewhere, if it is in a folder that has moved."""
        for there, here in self.moved.items():
            if path == there or path.startswith(there.rstrip("/") + "/"):
                return here + path[len(there) :]
        return path

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Variables whose values, or the entries of paths in them, lead to where folders are here."""
        return {
            name: os.pathsep.join(map(self.path, value.split(os.pathsep)))
            for name, value in variables.items()
        }

    def words(self, words: Sequence[str], directory: str, exists: Callable[[str], bool]) -> tuple[str, ...]:
        """A command whose words lead to where folders are here.

        Args:
            words: of the command.
            directory: on the launcher's host, in which the command is run there.
            exists: tells whether there is such a path here.
        """
        if self.path(directory) != directory:  # relative paths remain what they are
            return tuple(map(self.path, words))
        return tuple(self._word(word, directory, exists) for word in words)

    def _word(self, word: str, directory: str, exists: Callable[[str], bool]) -> str:
        there = os.path.normpath(os.path.join(directory, word))
        here = self.path(there)
        return here if here != there and exists(here) else self.path(word)


def merged(
    own: Mapping[str, str],
    jobs: Mapping[str, str],
    pythons: tuple[str, str],
    is_folder: Callable[[str], bool],
) -> dict[str, str]:
    """The variables of a job's processes on another host: the job's, in front of the host's own.

    Those of `OWN` stay the host's, as does TMPDIR where the launcher's is not there. An environment that is
    elsewhere comes to the front of PATH.

    Args:
        own: the agent's.
        jobs: those of the launcher's host.
        pythons: the launcher's interpreter, and the agent's.
        is_folder: tells whether there is such a folder here.
    """
    variables = {**own, **jobs, **{name: own[name] for name in OWN if name in own}}
    if not is_folder(variables.get("TMPDIR", "/")):
        del variables["TMPDIR"]
        variables |= {"TMPDIR": own["TMPDIR"]} if is_folder(own.get("TMPDIR", "")) else {}
    there, here = pythons
    if there not in ("", here):
        variables["PATH"] = os.pathsep.join(filter(None, [os.path.dirname(here), variables.get("PATH")]))
    return variables
