"""A trace of torch's operators: what each was given and what it made of it, as digests.

Two traces of the same computation show where it first took another way: the first operator with equal
inputs and other outputs is the one that does not repeat itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from edt_hvd.digests import PLAIN, digest, shape_digest


@dataclass(frozen=True)
class Operator:
    """One operator that has run.

    Attributes:
        operator: its name.
        inputs, outputs: digests.
        random: whether it draws random numbers.
        reads: the named tensors among its inputs.
    """

    operator: str
    inputs: str
    outputs: str
    random: bool = False
    reads: tuple[str, ...] = ()


class OperatorTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it unannotated
    """While it is entered, writes down every operator that torch runs, also those of backward passes.

    Memory that nobody has written yet (``torch.empty``) has no meaning and counts by its shape only.

    Args:
        write: called after every operator.
    """

    def __init__(self, write: Callable[[Operator], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._write = write
        self._unwritten: set[int] = set()
        self._names: dict[int, str] = {}

    def name(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give names to tensors, in place of earlier ones; their views are called the same."""
        self._names = {_address(tensor): name for name, tensor in tensors.items() if _has_memory(tensor)}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run one operator, and write it down."""
        kwargs = kwargs or {}
        if func.namespace == "profiler":
            return func(*args, **kwargs)
        given = pytree.tree_leaves((args, kwargs))
        inputs = digest([self._digest(leaf) for leaf in given])
        reads = {self._names.get(_address(tensor)) for tensor in _tensors(given)} - {None}
        result = func(*args, **kwargs)
        written = list(_written(func, args, kwargs))
        for tensor in written:
            if tensor.nbytes == tensor.untyped_storage().nbytes():
                self._unwritten.discard(_address(tensor))
        made = _tensors(result)
        if "empty" in func._schema.name:
            self._unwritten.update(map(_address, made))
        elif not func.is_view:
            self._unwritten.difference_update(_address(t) for t in made if all(t is not w for w in written))
        outputs = digest([self._digest(leaf) for leaf in pytree.tree_leaves((result, written))])
        is_random = torch.Tag.nondeterministic_seeded in func.tags
        self._write(Operator(func._schema.name, inputs, outputs, is_random, tuple(sorted(map(str, reads)))))
        return result

    def _digest(self, leaf: Any) -> str:
        if not isinstance(leaf, torch.Tensor):
            return digest(leaf) if isinstance(leaf, PLAIN) else type(leaf).__name__
        is_unwritten = _has_memory(leaf) and _address(leaf) in self._unwritten
        return shape_digest(leaf) if is_unwritten else digest(leaf)


def _tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors in `tree` that have memory of their own to speak of."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor) and _has_memory(leaf)]


def _has_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_meta


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[torch.Tensor]:
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = args[position] if position < len(args) else kwargs.get(argument.name)
        yield from _tensors(given)


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
