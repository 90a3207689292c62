"""A second set of leaves for a program's own step: gradients land in ``.grad`` there, as in plain torch.

In a loop over a step's micro-batches `edt_hvd` takes every gradient of the trained parameters as autograd
finishes it. A program's own step calls ``loss.backward()`` by itself and may look at the gradients, clip them
or add to them. So it works on a copy of the module whose parameters share the memory of the real ones and
whose buffers are the real ones. What it leaves in ``.grad`` is handed over by a node of the graph that has
exactly these gradients.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from typing_extensions import override

import edt_hvd


class ShadowModule:
    """The copy of a module.

    Args:
        module: on the device where it is trained.

    Raises:
        TypeError: a module that cannot be copied.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._real = module
        parameters = {p: torch.nn.Parameter(p.detach(), p.requires_grad) for p in module.parameters()}
        shared: dict[int, Any] = {id(real): own for real, own in parameters.items()}
        shared |= {id(buffer): buffer for buffer in module.buffers()}
        try:
            self.module = copy.deepcopy(module, shared)
        except (RuntimeError, TypeError) as error:
            raise TypeError(
                f"{type(module).__name__} cannot be copied, which a fn_step_train takes: {error}; keep "
                "tensors that are computed out of the module's attributes"
            ) from error
        self.parameters = parameters
        self._owners = list(zip(module.modules(), self.module.modules(), strict=True))

    def refresh(self) -> None:
        """Follow what was changed from outside: where the parameters are, and which of them are trained."""
        for real, own in self.parameters.items():
            own.data = real.data
            own.requires_grad_(real.requires_grad)

    def set_attribute(self, name: str, value: Any) -> None:
        """Set an attribute of the copy, and of the real module, which validates.

        Raises:
            TypeError: a layer or a parameter.
        """
        if isinstance(value, torch.nn.Module | torch.nn.Parameter):
            raise TypeError(
                f"fn_step_train sets model.{name} to a {type(value).__name__}, which nothing would train; "
                "make layers and parameters before the optimizer"
            )
        setattr(self.module, name, value)
        if name not in self.module._buffers:  # those are handed over
            setattr(self._real, name, value)

    def share_buffers(self) -> None:
        """Have the copy start from the real module's buffers."""
        for real, own in self._owners:
            own._buffers.update(real._buffers)

    def export_gradients(self, loss: torch.Tensor, step: "edt_hvd.Step") -> None:
        """Add the gradients in the copy to the step's, with the loss that they are of."""
        for owner, shadow in self._owners:  # those that a forward pass has replaced
            owner._buffers.update(shadow._buffers)
        trained = [real for real, own in self.parameters.items() if own.grad is not None]
        if trained:
            gradients = [self.parameters[real].grad for real in trained]
            step.backward(_Gradients.apply(loss, gradients, *trained))  # type: ignore[no-untyped-call]
        for own in self.parameters.values():
            own.grad = None


class _Gradients(torch.autograd.Function):
    """The loss, as if the gradients given were its derivatives."""

    @staticmethod
    def forward(
        ctx: Any, loss: torch.Tensor, gradients: list[torch.Tensor], *_: torch.Tensor
    ) -> torch.Tensor:
        ctx.gradients = gradients
        return loss.detach().reshape(()).clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        return (None, None, *ctx.gradients)


class Group(dict[str, Any]):
    """A parameter group to read.

    Steps are called for some mini-batches in some executors, whose optimizers must stay the same.
    """

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


class ShadowOptimizer(torch.optim.Optimizer):
    """What a program's own step sees as the optimizer: it clears gradients, and its step does nothing.

    It has no state of its own.
    """

    def __init__(self, shadow: ShadowModule, optimizer: torch.optim.Optimizer) -> None:
        self._shadow = shadow
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The groups with their options, and the copy's parameters; options cannot be changed."""
        own = self._shadow.parameters
        return [
            Group({**group, "params": [own[p] for p in group["params"]]})
            for group in self._optimizer.param_groups
        ]

    @override
    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad.detach_().zero_()

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
