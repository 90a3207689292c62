"""What a script sets for its whole process: environment variables, working directory, torch's defaults."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import multiprocessing

_environment: Mapping[str, str] = dict(os.environ)
_directory = os.getcwd()


def note() -> None:
    """What is set from now on is the script's."""
    global _environment, _directory
    _environment, _directory = dict(os.environ), os.getcwd()


@dataclass(frozen=True)
class Surroundings:
    """What the script has set.

    Attributes:
        environment: by the names of variables that it has changed, their values before and after, None
            without one.
        directory: the working directory before and after.
        dtype: torch's default for floating point.
        sharing_strategy: how torch hands tensors from loading processes on.
    """

    environment: Mapping[str, tuple[str | None, str | None]]
    directory: tuple[str, str]
    dtype: torch.dtype
    sharing_strategy: str

    @classmethod
    def now(cls) -> "Surroundings":
        """As they are in this process."""
        names = _environment.keys() | os.environ.keys()
        values = {name: (_environment.get(name), os.environ.get(name)) for name in sorted(names)}
        changed = {name: (before, after) for name, (before, after) in values.items() if before != after}
        strategy = multiprocessing.get_sharing_strategy()  # type: ignore[no-untyped-call]
        return cls(changed, (_directory, os.getcwd()), torch.get_default_dtype(), strategy)

    def adopt(self) -> None:
        """Set this process's likewise, but for variables of which it was given values of its own."""
        for name, (before, after) in self.environment.items():
            if os.environ.get(name) != before:
                continue
            if after is None:
                del os.environ[name]
            else:
                os.environ[name] = after
        torch.set_default_dtype(self.dtype)
        multiprocessing.set_sharing_strategy(self.sharing_strategy)  # type: ignore[no-untyped-call]

    def enter(self) -> None:
        """Change the working directory likewise; where it is not there, that is a warning."""
        before, after = self.directory
        if before == after:
            return
        try:
            os.chdir(after)
        except OSError as error:
            warnings.warn(f"the script's working directory cannot be entered here: {error}", stacklevel=2)
