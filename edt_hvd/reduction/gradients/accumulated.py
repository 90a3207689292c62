"""Gradients that are in ``.grad`` when a pass begins, and whether the pass adds to them.

As in torch, gradients add up until the optimizer has stepped: those of passes over different steps, and
what backward passes outside the loop over a step have left in ``.grad``. A further pass over the same
step replaces those of that step. Other than in torch, gradients from before the optimizer's last step, or
the last commit, are not added to.
"""

from collections.abc import Iterable, Sequence
from typing import Generic

import torch

from edt_hvd.errors import GradientError
from edt_hvd.reduction.gradients.layout import BucketT, Layout

Gradients = dict[torch.nn.Parameter, torch.Tensor]


class AccumulatedGradients(Generic[BucketT]):
    """What one reducer knows of the gradients in ``.grad`` outside of passes.

    Attributes:
        has_reduced: some are the result of a pass that no optimizer has stepped on.
        has_unreduced: some come from backward passes outside the loop over a step.
        replaces_added: the pass replaces gradients of its step that another step's have been added to.
    """

    def __init__(self) -> None:
        self.has_reduced = self.has_unreduced = self.replaces_added = False
        self._are_fresh = False
        """Gradients have come since the optimizer's last step and the last commit."""
        self._present: Gradients = {}
        """Those that were there when the pass began."""
        self._base: Gradients = {}
        """Those of them that the pass, and further ones over the same step, add to."""
        self._base_has_unreduced = False
        self._used: dict[BucketT, int] = {}
        """The versions of buckets with gradients that have been stepped on."""
        self._added_to_used = False

    def begin_pass(
        self,
        layout: Layout[BucketT],
        parameters: Sequence[torch.nn.Parameter],
        again: bool,
        after_other: bool,
        scaled: bool,
    ) -> None:
        """Choose what the pass adds to; buckets are about to be written to.

        Args:
            layout: of the last pass.
            parameters: trainable now.
            again, after_other: as for `StepParticipant.begin_pass`.
            scaled: the gradients come from a loss that a gradient scaler has scaled.

        Raises:
            GradientError: a backward pass outside the loop over a step has added to gradients that the
                optimizer has stepped on.
        """
        found = parameters if layout.is_of(parameters) else {*layout.parameters, *parameters}
        self._present = {p: p.grad for p in found if p.grad is not None}
        self.has_unreduced = self.has_unreduced and bool(self._present)
        self.replaces_added = after_other and self._are_fresh
        if again:
            self._base = {p: gradient for p, gradient in self._base.items() if p in self._present}
        else:
            self._base = self._present = self._to_be_added_to(layout, scaled)
            self.has_unreduced = self._base_has_unreduced = self.has_unreduced and bool(self._base)
        self.has_reduced = self.has_reduced and (again or bool(self._base))
        self._used, self._added_to_used = {}, False

    def _to_be_added_to(self, layout: Layout[BucketT], scaled: bool) -> Gradients:
        if not self._are_fresh or not self._present:
            return {}
        self.check_not_used(layout.parameters)
        if scaled and not _are_finite(self._present.values()):
            return {}  # a gradient scaler has left the optimizer's step out
        return {
            p: gradient.clone() if gradient is layout.view_of(p) else gradient
            for p, gradient in self._present.items()
        }

    def finish_pass(self, has_addends: bool) -> None:
        """Add the earlier gradients to those of the pass, or put them back if no worker had any in it."""
        if has_addends:
            self.has_unreduced = self._base_has_unreduced
            for parameter, gradient in self._base.items():
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
            self._are_fresh = True
        else:
            for parameter, gradient in self._present.items():
                parameter.grad = gradient
        self.has_reduced, self._present = True, {}

    def note_outside(self, layout: Layout[BucketT], parameter: torch.nn.Parameter) -> None:
        """A backward pass outside the loop over a step has changed the gradient of `parameter`."""
        self.has_unreduced = self._are_fresh = True
        if not self._used or parameter.grad is None or parameter.grad is not layout.view_of(parameter):
            return
        bucket, _ = layout.bucket_of[parameter]
        if bucket in self._used:
            self._used[bucket] += 1
            if bucket.flat._version == self._used[bucket]:
                self._added_to_used = True
            else:  # zero_grad has written to it before
                del self._used[bucket]

    def note_step(self) -> None:
        """An optimizer is about to step on the gradients, all of which are reduced now."""
        self.has_reduced = self.has_unreduced = False

    def expire(self, buckets: Iterable[BucketT]) -> None:
        """The gradients that are there have been used: what comes next takes their place."""
        self._are_fresh, self._base, self._base_has_unreduced = False, {}, False
        self._used = {
            bucket: bucket.flat._version
            for bucket in buckets
            if bucket.touched and not bucket.flat.is_inference()
        }

    def check_not_used(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Check that nothing was added to gradients that the optimizer has stepped on.

        Raises:
            GradientError: a backward pass outside the loop over a step has.
        """
        if self._added_to_used and any(p.grad is not None and p.grad.any() for p in parameters):
            raise GradientError(
                "loss.backward() outside the loop over a step's micro-batches has added to gradients that "
                "optimizer.step() has used already; call optimizer.zero_grad() before it"
            )


def _are_finite(gradients: Iterable[torch.Tensor]) -> bool:
    """Whether all elements are, with one question to each device."""
    by_device = dict[torch.device, list[torch.Tensor]]()
    for each in gradients:
        by_device.setdefault(each.device, []).append(each.isfinite().all())
    return all(bool(torch.stack(found).all()) for found in by_device.values())
