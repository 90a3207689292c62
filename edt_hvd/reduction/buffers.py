"""Buffers that a model changes in its forward passes, batch norm's running statistics above all.

Every micro-batch starts from the buffers as they were when the step began. What each of them changes is
weighted by its share of the batch's samples and summed in fixed point, so that after the step every worker
has the same buffers, however the micro-batches were divided. For batch norm they are the mean of what each
micro-batch alone would have left. The grid follows from the buffers at the start of the step. An
integer's changes are counted as integers and their mean is rounded to one: it stays exact beyond 2**53. For
a number of micro-batches the mean is right, for a position in a queue it is not; a warning names the buffer.

torch counts most writes to a tensor, but neither batch norm's to its statistics nor those through ``.data``.
These show only in the bits, and comparing them costs as much as reading all buffers, masks and tables
included. So all are compared after every micro-batch of their first step in this process; from then on those
that have changed without a count, and the others once a step. In the report of every step the workers agree
on which are which: an uncounted change that is not the first step's must not depend on who has seen it.
"""

import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence

import horovod.torch as hvd
import numpy as np
import torch
from typing_extensions import override

from edt_hvd.errors import GradientError
from edt_hvd.reduction import participants
from edt_hvd.reduction.comparison import Description, form_of
from edt_hvd.reduction.fixed_point.tensor_sum import NOTHING, read_sizes, send_sizes
from edt_hvd.reduction.header import Report
from edt_hvd.reduction.model_buffer import ModelBuffer, begin_sums, changed_ones, differing
from edt_hvd.reduction.participants import StepParticipant

_FIELDS = 4
"""Of a buffer's report: addends, exponent, whether there are inf or nan, and the following flags."""

_TRACKED_SO_FAR, _UNTRACKED = 1, 2
"""Flags: torch counted all writes to it in earlier steps; it has had one that torch did not count."""


def _below(module: torch.nn.Module, prefix: str) -> Iterator[tuple[str, torch.nn.Module]]:
    for name, each in module.named_modules():
        yield f"{prefix}{name}." if name else prefix, each


def _has_mean(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized


class BufferMean(StepParticipant):
    """Averages the buffers of the tracked modules over a step's micro-batches."""

    def __init__(self) -> None:
        self._modules: list[weakref.ref[torch.nn.Module]] = []
        self._buffers: dict[tuple[int, str], ModelBuffer] = {}
        self._names: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._micro_batches = 1
        self._has_run = False
        """This worker has run a micro-batch of the step."""
        self._untracked: weakref.WeakKeyDictionary[torch.nn.Module, dict[str, bool]] = (
            weakref.WeakKeyDictionary()
        )
        """Of the buffers that have been through a step, whether one has changed without a count."""
        self._late: list[ModelBuffer] = []
        """Those that have changed in the present step without a count, and not in an earlier one."""
        self._warned: weakref.WeakKeyDictionary[torch.nn.Module, set[str]] = weakref.WeakKeyDictionary()
        """Names of the integers that a warning has named."""

    def track(self, module: torch.nn.Module, name: str | None = None) -> None:
        """Follow the buffers of `module` and its submodules, which messages name so."""
        if name is not None:
            self._names[module] = name
        self._modules = [known for known in self._modules if known() not in (None, module)]
        self._modules.append(weakref.ref(module))

    @override
    def reset(self) -> None:
        self._buffers = {}

    @override
    def begin_pass(self, micro_batches: int, again: bool = False, after_other: bool = False) -> None:
        self._micro_batches, self._has_run, self._late = micro_batches, False, []
        changed = changed_ones(self._buffers.values())
        known = {key: buffer for key, buffer in self._buffers.items() if buffer not in changed}
        self._buffers = {}
        for owner, name, tensor in self._found():
            key = (id(owner), name)
            buffer = known.get(key)
            if buffer is None or buffer.owner is not owner:
                buffer = ModelBuffer(owner, name, tensor)
            buffer.changes = None
            self._buffers[key] = buffer

    def _found(self) -> Iterator[tuple[torch.nn.Module, str, torch.Tensor]]:
        seen: set[int] = set()
        for module, _ in self._named():
            for owner in module.modules():
                for name, tensor in owner._buffers.items():
                    if tensor is not None and id(tensor) not in seen and _has_mean(tensor):
                        seen.add(id(tensor))
                        yield owner, name, tensor

    @override
    def describe(self) -> Description:
        """The buffers; a cache, which is not in the ``state_dict``, may have another size on each worker."""
        owners = {
            id(owner): prefix for module, prefix in self._named() for prefix, owner in _below(module, prefix)
        }
        return {
            f"the buffer {owners.get(owner_id, '')}{name}": "a cache"
            if buffer.owner is not None and name in buffer.owner._non_persistent_buffers_set
            else form_of(buffer.tensor)
            for (owner_id, name), buffer in self._buffers.items()
        }

    def parameter_names(self) -> dict[torch.nn.Parameter, str]:
        """The parameters of the tracked modules, by the first name that each has."""
        found: dict[torch.nn.Parameter, str] = {}
        for module, prefix in self._named():
            for name, parameter in module.named_parameters():
                found.setdefault(parameter, f"{prefix}{name}")
        return found

    def _named(self) -> Iterator[tuple[torch.nn.Module, str]]:
        """The tracked modules, with what the names of their tensors begin with."""
        for module in (module for reference in self._modules if (module := reference()) is not None):
            name = self._names.get(module)
            yield module, f"{name}." if name else ""

    @override
    def abandon_pass(self) -> None:
        """Restore the buffers: the step will be repeated, and start from the same ones on every worker."""
        for buffer in changed_ones(self._buffers.values()):
            buffer.restore()

    @override
    def after_micro_batch(self, weight: float) -> None:
        self._has_run = True
        sure = [buffer for buffer in self._buffers.values() if buffer.surely_changed]
        compared = differing(
            b for b in self._buffers.values() if not b.surely_changed and not self._was_tracked_so_far(b)
        )
        for buffer in compared:
            self._known_of(buffer)[buffer.name] = True
        self._add(sure + compared, weight)

    def _add(self, changed: list[ModelBuffer], weight: float) -> None:
        self._read_sizes()  # those of the last micro-batch, while a GPU computes
        begin_sums(changed, self._micro_batches)
        for buffer in changed:
            buffer.add_change(weight)
            buffer.restore()
        send_sizes()

    def _read_sizes(self) -> None:
        read_sizes(buffer.changes for buffer in self._buffers.values() if buffer.changes is not None)

    def _was_tracked_so_far(self, buffer: ModelBuffer) -> bool:
        return not buffer.is_statistic and self._known_of(buffer).get(buffer.name) is False

    def _known_of(self, buffer: ModelBuffer) -> dict[str, bool]:
        return self._untracked.setdefault(buffer.owner, {}) if buffer.owner is not None else {}

    @override
    def report(self) -> Report:
        """The fields of each buffer; the loop over the step has not compared the quiet ones."""
        if self._has_run:
            self._late = differing(b for b in self._buffers.values() if self._was_tracked_so_far(b))
        if self._micro_batches == 1:
            self._add(self._late, 1.0)
        self._read_sizes()
        rows = np.zeros((len(self._buffers), _FIELDS), dtype=np.int32)
        rows[:, 1] = NOTHING
        for row, buffer in zip(rows, self._buffers.values(), strict=True):
            if buffer.changes is not None:
                row[:3] = buffer.changes.addends, buffer.changes.exponent, buffer.changes.special is not None
            has_untracked_write = self._known_of(buffer).get(buffer.name) or buffer in self._late
            row[3] = _TRACKED_SO_FAR * self._was_tracked_so_far(buffer) + _UNTRACKED * has_untracked_write
        return rows.reshape(-1)

    @override
    def finish_pass(self, reports: Report, divisor: float | None = None) -> None:
        """Average the buffers.

        Raises:
            GradientError: a change cannot be attributed to one of several micro-batches.
        """
        if not self._buffers:
            return
        rows = reports.reshape(len(reports), -1, _FIELDS)
        self._agree(np.bitwise_or.reduce(rows[:, :, 3]).tolist())
        rows = rows[:, :, :3]
        found = zip(self._buffers.values(), rows.sum(axis=0)[:, 0], rows.max(axis=0), strict=True)
        changed = [(buffer, addends, row) for buffer, addends, row in found if addends]
        begin_sums((buffer for buffer, *_ in changed), self._micro_batches)
        sums = [buffer.changes for buffer, *_ in changed if buffer.changes is not None]
        self._reduce([each.total for each in sums], "total")
        outside: list[torch.Tensor] = []
        for each, (*_, (_, exponent, special)) in zip(sums, changed, strict=True):
            outside += [each.level(n) for n in range(1, each.grid.levels(int(exponent)) + 1)]
            outside += [each.specials()] if special else []
        for dtype in (torch.int64, torch.float32):
            self._reduce([part for part in outside if part.dtype == dtype], f"outside.{dtype}")
        for buffer, addends, _ in changed:
            buffer.finish(by_all=addends == self._micro_batches)
        self._warn_of_integers(buffer for buffer, *_ in changed)

    def _warn_of_integers(self, changed: Iterable[ModelBuffer]) -> None:
        """Name each integer among the buffers once, on the coordinator; those of batch norm count steps."""
        for buffer in changed:
            owner, dtype = buffer.owner, buffer.start.dtype
            if owner is None or buffer.name == "num_batches_tracked" or hvd.rank() != 0:
                continue
            if dtype.is_floating_point or dtype == torch.bool or buffer.name in self._warned.get(owner, ()):
                continue
            self._warned.setdefault(owner, set()).add(buffer.name)
            warnings.warn(
                f"micro-batches have changed the integer buffer {buffer.name} of a {type(owner).__name__}: "
                "like every buffer, it becomes the mean of what the step's micro-batches make of it. A "
                "counter then counts steps, but a position in a queue is wrong, and so is the queue: change "
                "both after the loop over the step, on all workers alike, with what edt_hvd.gather() "
                "collects ('A queue of earlier samples' in docs/how-to/recipes.md)",
                stacklevel=2,
            )

    def _agree(self, flags: Sequence[int]) -> None:
        """Note which buffers change without a count, given what any worker has seen."""
        for buffer, seen in zip(self._buffers.values(), flags, strict=True):
            if seen == _TRACKED_SO_FAR | _UNTRACKED and self._micro_batches > 1:
                raise GradientError(
                    f"a micro-batch has changed the buffer {buffer.name} of a {type(buffer.owner).__name__} "
                    "through `.data` or in another way that torch does not count, for the first time after "
                    "its first step, so its mean over the micro-batches is not known; write to buffers under "
                    "torch.no_grad() instead"
                )
            self._known_of(buffer)[buffer.name] = bool(seen & _UNTRACKED)

    @staticmethod
    def _reduce(parts: list[torch.Tensor], name: str) -> None:
        """Sum tensors of one dtype over the workers, in place, in one transfer a device."""
        if hvd.size() == 1:
            return
        for device in dict.fromkeys(part.device for part in parts):
            here = [part for part in parts if part.device == device]
            flat = hvd.allreduce_(torch.cat(here), name=f"edt.buffers.{name}.{device.type}", op=hvd.Sum)
            for part, reduced in zip(here, flat.split([part.numel() for part in here]), strict=True):
                part.copy_(reduced)


_mean = BufferMean()


def invalidate() -> None:
    """Drop the copies of an unfinished step: the buffers were written to outside of steps, and stay so."""
    _mean.reset()


def parameter_names() -> dict[torch.nn.Parameter, str]:
    """The names of the parameters in all models that a state or a distributed optimizer was given."""
    return _mean.parameter_names()


def track(module: torch.nn.Module, name: str | None = None) -> None:
    """Average the buffers of `module`, a state's value of that name, over every step's micro-batches."""
    _mean.track(module, name)
    participants.register(_mean)
