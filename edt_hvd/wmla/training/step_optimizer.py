"""What a program's own step sees as the optimizer: executors call it for mini-batches of their own."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from typing_extensions import override


class Group(dict[str, Any]):
    """A parameter group to read: the optimizers of all executors must stay the same."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "params" or name not in self or self[name] != value:
            raise TypeError(
                f"fn_step_train sets {name!r} of a parameter group, which each executor would do for "
                "mini-batches of its own; set it in a Callback's on_epoch_begin, in params['optimizer']"
            )

    @override
    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    @override
    def update(self, *others: Any, **named: Any) -> None:
        for name, value in dict(*others, **named).items():
            self[name] = value


class StepOptimizer(torch.optim.Optimizer):
    """Clears gradients; its step does nothing. It has no state of its own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The groups, whose options cannot be changed."""
        return [Group(group) for group in self._optimizer.param_groups]

    @override
    def zero_grad(self, set_to_none: bool = True) -> None:
        self._optimizer.zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do nothing: the engine steps, once the gradients of all mini-batches are there."""
        return closure() if closure is not None else None

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Refuse to: executors do so apart from each other.

        Raises:
            TypeError: always.
        """
        raise TypeError("fn_step_train loads a state into the optimizer; do so before train()")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refuse to: executors do so apart from each other.

        Raises:
            TypeError: always.
        """
        raise TypeError("fn_step_train adds a parameter group; make them with the optimizer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)
