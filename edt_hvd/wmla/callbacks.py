"""The classes that a program's own callbacks derive from. Neither relies on its constructor having run."""

from typing import Any

import torch


class Callback:
    """Hooks of the training, called on every executor.

    Attributes:
        params: ``optimizer``, the one that is stepped, and ``epochs``, their number.
        model: the module that is trained.
    """

    params: dict[str, Any] = {}  # noqa: RUF012 - replaced before the first hook, never written to
    model: torch.nn.Module | None = None

    def on_train_begin(self) -> None:
        """Before the first epoch, and in every executor that joins later, before it is given the state."""

    def on_train_end(self) -> None:
        """After the last epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Before epoch `epoch`, from 0."""

    def on_epoch_end(self, epoch: int, save_model: bool = False) -> None:
        """After epoch `epoch`; `save_model` on one executor, when the engine saves the model as well."""


class LoggerCallback:
    """Is told the results, once a mini-batch; in one of two ways, recognised by the names of the parameters.

    ======================  ====================================  =====================================
    `log_train_metrics`     (loss, acc, completed_batch, worker)  (metrics, iteration, epoch, worker)
    `log_test_metrics`      (loss, acc, completed_batch, worker)  (metrics, iteration, epoch)
    ======================  ====================================  =====================================

    Losses and accuracies are means over the epoch so far, accuracies in percent; all are Python floats.
    """

    def on_train_begin(self) -> None:
        """Before the first result."""

    def on_train_end(self) -> None:
        """After the last result."""

    def log_train_metrics(self, *_args: Any, **_kwargs: Any) -> None:
        """The results of one more mini-batch."""

    def log_test_metrics(self, *_args: Any, **_kwargs: Any) -> None:
        """The results of a validation."""
