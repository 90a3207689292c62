"""The program's own callbacks in an executor, and what of them belongs to the training's state."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Hooks:
    """Calls the callbacks' hooks, those that there are.

    Attributes that are plain values, or objects with `state_dict` such as schedulers, are part of the
    training's state: executors that join are given them, and they go back with the training after a loss.

    Args:
        callbacks: objects with any of `callbacks.Callback`'s methods; are given ``params`` and ``model``.
    """

    def __init__(
        self,
        callbacks: Sequence[Any],
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        epochs: int,
    ) -> None:
        self._callbacks = tuple(callbacks)
        for callback in self._callbacks:
            callback.params = {"optimizer": optimizer, "epochs": epochs}
            callback.model = model

    def train_begin(self) -> None:
        """Before the state is brought to this executor, so that it counts more than what the hooks change."""
        self._call("on_train_begin")

    def train_end(self) -> None:
        """After the last epoch."""
        self._call("on_train_end")

    def epoch_begin(self, epoch: int) -> None:
        """Before epoch `epoch`, from 0."""
        self._call("on_epoch_begin", epoch)

    def epoch_end(self, epoch: int, save_model: bool) -> None:
        """After epoch `epoch`; those that take it are told whether to save the model."""
        for callback in self._callbacks:
            hook = getattr(callback, "on_epoch_end", None)
            if hook is not None:
                arguments = {"save_model": save_model} if _takes_save_model(hook) else {}
                hook(epoch, **arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            hook = getattr(callback, name, None)
            if hook is not None:
                hook(*arguments)

    def state_dict(self) -> dict[str, Any]:
        """The state of all callbacks."""
        return {str(number): _state_of(callback) for number, callback in enumerate(self._callbacks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        for number, callback in enumerate(self._callbacks):
            for name, value in state.get(str(number), {}).items():
                present = getattr(callback, name, None)
                if present is not None and _is_stateful(present):
                    present.load_state_dict(value)
                else:
                    setattr(callback, name, value)


def _takes_save_model(hook: Any) -> bool:
    parameters = inspect.signature(hook).parameters
    return "save_model" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _state_of(callback: Any) -> dict[str, Any]:
    attributes = {n: v for n, v in vars(callback).items() if n not in ("params", "model")}
    stateful = {name: value.state_dict() for name, value in attributes.items() if _is_stateful(value)}
    return stateful | {name: value for name, value in attributes.items() if _is_plain(value)}


def _is_stateful(value: Any) -> bool:
    trained = isinstance(value, torch.nn.Module | torch.optim.Optimizer)
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict") and not trained


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(each) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    return type(value) in PLAIN
