"""`FabricModel`: the interface of a program, with every argument that programs for WMLA use."""

import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from edt_hvd.wmla import driving, launching, program
from edt_hvd.wmla.job_dir import JobDir
from edt_hvd.wmla.launching import Launcher
from edt_hvd.wmla.logs.console import Console
from edt_hvd.wmla.logs.figure import Figure, in_notebook, kernel_shell
from edt_hvd.wmla.logs.loggers import DefaultLogger, Logger
from edt_hvd.wmla.logs.result_log import Listener, ResultLog, ToLogger
from edt_hvd.wmla.logs.tensorboard import TensorBoard
from edt_hvd.wmla.notebook import training
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.train_config import ScaleUp, make_train_config, worker_limit
from edt_hvd.wmla.training import saving

ALONE_VARIABLE = "EDT_WMLA_ROLE"
"""Set to ``alone``, it has the kernel of a notebook train by itself."""

_ALIASES: Mapping[str, str] = {
    "driver_logger_callback": "driver_logger",
    "worker_logger_callback": "worker_logger",
    "save_to_onnx": "enable_onnx",
    "fn_step_test": "fn_test",
    "datasets_fn": "datasets_function",
    "loss_fn": "loss_function",
}


class FabricModel:
    """A model with everything that is needed to train it on a changing number of GPUs.

    Args:
        model: the model, on any device.
        datasets_function: returns ``(train_dataset, test_dataset)``, map-style; called in every executor.
        loss_function: takes ``(output, target)``, returns the mean loss of a mini-batch.
        optimizer: optimizer of the model's parameters, or of some of them.
        **options: by name, with the older names in brackets:

            - metrics: functions that take ``(output, target)`` and return a number, or None; a repeated name
              gets a number, as in ``accuracy_2``;
            - driver_logger (driver_logger_callback): a `LoggerCallback`, called in the driver with means over
              the epoch; the default writes the lines that notebooks read to ``$LOG_DIR/stdout``;
            - worker_logger (worker_logger_callback): the same, in every executor with its own mini-batches;
            - user_callback: a `Callback`, or a list of them;
            - enable_onnx (save_to_onnx): also write the final model in ONNX format;
            - fn_step_train: takes ``(model, data, eva, train_loader, fn_args)``, returns ``(acc, loss)``;
              ``train_loader`` has ``dataset`` and ``batch_size``;
            - fn_test (fn_step_test): takes ``(model, test_iter, fn_args)``, returns the mean loss;
            - fn_batch_collate: takes a list of ``(feature, label)``, returns ``(features, labels)``.

            Others are ignored with a warning.

    Raises:
        UnsupportedError: a program for Keras or TensorFlow.
        TypeError, ValueError: an argument is invalid, or is given under both its names.
    """

    def __init__(
        self,
        model: Any,
        datasets_function: Any = None,
        loss_function: Any = None,
        optimizer: Any = None,
        **options: Any,
    ) -> None:
        program.check_backend()
        given = {
            "datasets_function": datasets_function,
            "loss_function": loss_function,
            "optimizer": optimizer,
        }
        settings = _settled({name: value for name, value in given.items() if value is not None}, options)
        program.refuse_keras(model, settings.get("optimizer"), settings.get("loss_function"))
        if missing := sorted(given.keys() - settings.keys()):
            raise TypeError(f"FabricModel needs {' and '.join(missing)} as well; give them after the model")
        program.check_model(model, settings["optimizer"])
        self._driver_logger = settings.pop("driver_logger", None) or DefaultLogger()
        Logger(self._driver_logger)
        Logger(settings.get("worker_logger"))
        for name in ("datasets_function", "loss_function", "fn_step_train", "fn_test", "fn_batch_collate"):
            program.check_callable(name, settings.get(name))
        settings["metrics"] = program.metric_functions(settings.get("metrics"))
        settings["user_callback"] = program.callbacks(settings.get("user_callback"))
        settings["enable_onnx"] = bool(settings.get("enable_onnx"))
        self._program = Program(model, **settings)
        print("Using pytorch backend.", flush=True)

    def train(
        self,
        epoch_number: int,
        batch_size: int,
        engines_number: int | None = None,
        num_dataloader_threads: int = 0,
        validation_freq: int = 1,
        checkpoint_freq: int = 1,
        effective_batch_size: int | None = None,
        *,
        worker_memory: str | None = None,
        driver_memory: str | None = None,
        worker_num: int | None = None,
        worker_device_num: int | None = None,
        hardware_spec: Mapping[str, Any] | None = None,
        scaleup_function: ScaleUp | None = None,
        **others: Any,
    ) -> None:
        """Train the model. At the return it has the final weights.

        Args:
            epoch_number: passes over the training set.
            batch_size: samples of a mini-batch, which goes through the model at once, on one GPU.
            engines_number: mini-batches of an optimizer step, and so the largest useful number of executors;
                default is ``worker_num``, else the most executors that the job may have, else 1.
            num_dataloader_threads: loading processes of an executor; with 0 it loads by itself.
            validation_freq: epochs between two runs over the test set.
            checkpoint_freq: epochs between two saved models; with 0 only the last is saved.
            effective_batch_size: samples of an optimizer step, instead of ``engines_number``.
            worker_num: maximum number of executors.
            hardware_spec: its ``nodes.num_nodes`` overrides ``worker_num``; the rest has no effect.
            worker_memory, driver_memory, worker_device_num: no effect, because edt-launch and the job service
                select machines.
            scaleup_function: takes ``(epoch, max_engine_num)``, returns the maximum number of executors from
                that epoch on; called in the driver.
            **others: ignored with a warning.

        Raises:
            TypeError, ValueError: an argument is invalid.
            TrainingFailedError: the executors ended without success.
        """
        is_driver = launching.is_driver(os.environ)
        _say_ignored(
            "edt-launch and the job service decide about machines",
            worker_memory=worker_memory,
            driver_memory=driver_memory,
            worker_device_num=worker_device_num,
            hardware_spec=hardware_spec,
        )
        _warn_unknown("train()", others)
        config = make_train_config(
            epoch_number,
            batch_size,
            engines_number,
            effective_batch_size=effective_batch_size,
            worker_num=worker_limit(worker_num, hardware_spec),
            num_dataloader_threads=num_dataloader_threads,
            validation_freq=validation_freq,
            checkpoint_freq=checkpoint_freq,
            seed=torch.initial_seed() % 2**63,
            usual_engines=_usual_engines() if is_driver else 1,
        )
        program.check_callable("scaleup_function", scaleup_function)
        if is_driver:
            launcher = Launcher.of(os.environ)
            try:
                driving.train_in_executors(
                    self._program, config, self._result_log, launcher, scaleup_function
                )
            finally:
                launcher.close()
        elif kernel_shell() is not None and os.environ.get(ALONE_VARIABLE) != "alone":
            training.train(self._program, config, self._result_log, scaleup_function)
        else:
            _say_ignored(
                "edt-launch --wmla alone changes the number of workers", scaleup_function=scaleup_function
            )
            driving.train_here(self._program, config, self._result_log)
        if in_notebook():
            print(f"Job {_exec_id()} finishes with state FINISHED.")

    def download(self, out_dir: str | os.PathLike[str] | None = None) -> Path:
        """Write the trained model to a zip file.

        Args:
            out_dir: folder of the file; default is ``/tmp``.

        Returns:
            The path of the file, which contains ``model/`` and, if it exists, ``val_dict_list.json``.

        Raises:
            FileNotFoundError: nothing has been trained yet.
        """
        folder = saving.model_dir()
        if not saving.model_path(folder, saving.FINAL).exists():
            raise FileNotFoundError(f"no trained model in {folder / 'train'}; call train() first")
        path = Path(out_dir or "/tmp", f"{_exec_id()}.zip")
        path.parent.mkdir(parents=True, exist_ok=True)
        results = Path(os.environ.get("RESULT_DIR", "."), "val_dict_list.json")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(each for each in folder.rglob("*") if each.is_file()):
                archive.write(file, Path("model", file.relative_to(folder)))
            if results.exists():
                archive.write(results, results.name)
        print(f"Save model: {path}")
        return path

    def _result_log(self, before_epoch: Callable[[int], None]) -> ResultLog:
        names = self._program.metric_names
        shown: Listener = Figure() if in_notebook() else Console()
        return ResultLog(
            [shown, ToLogger(Logger(self._driver_logger), names), TensorBoard(names)], before_epoch
        )


def _settled(given: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments under their present names.

    Raises:
        TypeError: one that is given twice.
    """
    known = set(Program.__dataclass_fields__) - {"model"} | {"driver_logger"}
    settings, unknown = dict(given), {}
    for name, value in options.items():
        present = _ALIASES.get(name, name)
        if name == "keras_custom_objects":
            continue
        if present not in known:
            unknown[name] = value
        elif present in settings or (present != name and present in options):
            raise TypeError(f"{name} is the same as {present}, which is given as well; give one of them")
        else:
            settings[present] = value
    _warn_unknown("FabricModel", unknown)
    return settings


def _warn_unknown(where: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        warnings.warn(f"{where} does not know {', '.join(sorted(arguments))}; left out", stacklevel=3)


_said: set[str] = set()


def _say_ignored(reason: str, **arguments: Any) -> None:
    """Say once of each argument that it has no effect."""
    new = {name for name, value in arguments.items() if value is not None} - _said
    if new:
        _said.update(new)
        print(f"without effect: {', '.join(sorted(new))}; {reason}", file=sys.stderr)


def _usual_engines() -> int:
    return JobDir.of().engines(int(os.environ[launching.MAX_WORKERS_VARIABLE]))


def _exec_id() -> str:
    return os.environ.get("DLI_EXECID") or f"edt-{os.getpid()}"
