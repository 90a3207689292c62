"""Trees of values in a form that `torch.load(weights_only=True)` reads: what it refuses travels as bytes."""

import pickle
from collections import OrderedDict
from typing import Any

import torch

from edt_hvd.errors import StateError

PICKLED = "edt.pickled"
"""The only key of a dict that stands for a value which needs pickle."""

_PLAIN = (
    *(bool, int, float, complex, str, bytes, type(None)),
    *(torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype, torch.device),
)
_KEYS = (bool, int, float, str, type(None))


def encode(value: Any, name: str = "state") -> Any:
    """The value, with everything in it that is no tensor or plain value pickled.

    Args:
        value: nested dicts, lists and tuples; leaves are tensors or picklable.
        name: of the value, for messages.

    Raises:
        StateError: a leaf cannot be pickled.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (dict, OrderedDict) and PICKLED not in value and all(type(key) in _KEYS for key in value):
        return kind((key, encode(item, f"{name}.{key}")) for key, item in value.items())
    if kind in (list, tuple):
        return kind(encode(item, f"{name}[{number}]") for number, item in enumerate(value))
    try:
        return {PICKLED: pickle.dumps(value)}
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise StateError(
            f"{name}, a {kind.__name__}, cannot be pickled ({error}); keep it out of the edt_hvd.TorchState, "
            "or give it state_dict() and load_state_dict()"
        ) from error


def decode(value: Any) -> Any:
    """The value that `encode` was given. Unpickles: only for what nobody else has written."""
    kind = type(value)
    if kind in (dict, OrderedDict):
        if value.keys() == {PICKLED}:
            return pickle.loads(value[PICKLED])
        return kind((key, decode(item)) for key, item in value.items())
    if kind in (list, tuple):
        return kind(decode(item) for item in value)
    return value
