"""Which functions write checkpoints: they are wrapped, so that the end of the outermost of them is known."""

import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

FUNCTIONS = (
    ("torch", "save"),
    ("torch.serialization", "save"),
    ("torch.distributed.checkpoint", "save"),
    ("torch.distributed.checkpoint.state_dict_saver", "save"),
    ("safetensors.torch", "save_file"),
)
"""Functions that have written a checkpoint when they return."""

TO_MEMORY = (("safetensors.torch", "save"),)
"""Functions that return the content of a checkpoint."""

ASYNCHRONOUS = (
    ("torch.distributed.checkpoint", "async_save"),
    ("torch.distributed.checkpoint.state_dict_saver", "async_save"),
)
"""Functions that return a future of that."""


class Saves:
    """Counts checkpoints that are being written; `on_change` is told when the first begins, the last ends.

    One that is in memory at first counts when the program opens a file for writing next, if it takes no
    optimizer step before that: `forget_memory`.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[bool], None] = lambda is_saving: None
        self._lock = threading.Lock()
        self._under_way = 0
        self._is_in_memory = False
        self._listens = False

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A checkpoint is being written."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            before, self._under_way = self._under_way, self._under_way + change
            if not before or not self._under_way:
                self.on_change(not before)

    def install(self) -> None:
        """Wrap the functions that write checkpoints, of those packages that are there."""
        for names, wrap in (
            (FUNCTIONS, self._wrapped),
            (TO_MEMORY, self._wrapped_to_memory),
            (ASYNCHRONOUS, self._wrapped_asynchronous),
        ):
            wrapped: dict[Any, Any] = {}
            for module_name, name in names:
                try:
                    module = import_module(module_name)
                except ImportError:
                    continue
                function = getattr(module, name)
                setattr(module, name, wrapped.setdefault(function, wrap(function)))

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def save(*arguments: Any, **named: Any) -> Any:
            if is_in_memory(arguments, named):
                return self._to_memory(function, arguments, named)
            with self.saving():
                return function(*arguments, **named)

        return save

    def _wrapped_to_memory(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def save(*arguments: Any, **named: Any) -> Any:
            return self._to_memory(function, arguments, named)

        return save

    def _to_memory(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        result = function(*arguments, **named)
        if not self._listens:
            self._listens = True
            sys.addaudithook(self._hear)
        self._is_in_memory = True
        return result

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and self._is_in_memory and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            self._is_in_memory = False
            with self.saving():
                pass

    def forget_memory(self) -> None:
        """What was saved to memory is no checkpoint."""
        self._is_in_memory = False

    def _wrapped_asynchronous(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def save(*arguments: Any, **named: Any) -> Any:
            self._count(1)
            try:
                result = function(*arguments, **named)
            except BaseException:
                self._count(-1)
                raise
            future = getattr(result, "upload_completion", result)
            if isinstance(future, Future):
                future.add_done_callback(lambda _: self._count(-1))
            else:
                self._count(-1)
            return result

        return save


def is_in_memory(arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether what is saved goes to a buffer, to be sent, copied or written, not to a file."""
    target = arguments[1] if len(arguments) > 1 else named.get("f", named.get("filename", ""))
    if isinstance(target, str | os.PathLike) or target is None:
        return False
    return isinstance(target, io.BytesIO)
