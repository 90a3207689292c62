"""The frameworks that programs can be submitted for."""

from collections.abc import Mapping
from typing import Any

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission.args import ArgumentsError

ELSEWHERE = ("keras", "tensorflow", "caffe", "chainer", "mxnet")
"""Parts of the names of WMLA's other frameworks, in lower case."""

ABOUT: Mapping[Framework, tuple[str, tuple[str, ...]]] = {
    Framework.ELASTIC: (
        "ElasticPyTorchTrain",
        (
            "Elastic distributed training: FabricModel.train() on workers that come and go.",
            "Example: --exec-start edtPyTorch --model-dir DIR --model-main main.py --numWorker 4",
        ),
    ),
    Framework.SINGLE: (
        "SingleNodePytorchTrain",
        (
            "The script in one process, with the devices of --workerDeviceNum.",
            "Example: --exec-start PyTorch --model-dir DIR --model-main main.py --workerDeviceNum 1",
        ),
    ),
    Framework.GANG: (
        "DistPyTorchTrain",
        (
            "The script in several processes that torch.distributed joins, all or none.",
            "Example: --exec-start distPyTorch --model-dir DIR --model-main main.py --numWorker 2",
        ),
    ),
}
"""The name of a framework's applications, and what it is."""


def named(name: str) -> Framework:
    """The framework of that name.

    Raises:
        ArgumentsError: there is none, or not here.
    """
    known = ", ".join(Framework)
    if not name:
        raise ArgumentsError(f"--exec-start is missing: it names the framework, one of {known}")
    if any(part in name.lower() for part in ELSEWHERE):
        raise ArgumentsError(
            f"--exec-start {name!r:.40}: only PyTorch programs run here, with one of the frameworks {known}"
        )
    try:
        return Framework(name)
    except ValueError:
        raise ArgumentsError(f"--exec-start {name!r:.40}: there are only {known}") from None


def app_name(name: str | None) -> str:
    """What applications of a framework are called; None for a job that has none."""
    framework = Framework.of(name)
    return "EDT" if framework is None else ABOUT[framework][0]


def classic(framework: Framework) -> dict[str, Any]:
    """A framework in the manner of 1.2.x."""
    return {
        "name": framework.value,
        "description": "",
        "desc": list(ABOUT[framework][1]),
        "frameworkVersion": "",
        "distributeStrategy": "",
        "numPs": 0,
    }


def modern(framework: Framework, pool: int) -> dict[str, Any]:
    """A framework in the manner of 2.x; `pool` is the number of devices that there are."""
    most = 1 if framework is Framework.SINGLE else max(pool, 1)
    return classic(framework) | {
        "deployMode": "client",
        "hasTask0": framework.is_elastic,
        "execMode": "single" if framework is Framework.SINGLE else "distributed",
        "appName": app_name(framework),
        "numWorkers": 1,
        "maxWorkers": most,
        "workerMemory": "",
        "frameworkCmdGenerator": "",
        "backend": "pytorch",
        "prebuiltModelMain": "",
        "prebuiltModelDir": "",
        "exports": [],
    }
