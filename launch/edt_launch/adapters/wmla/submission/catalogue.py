"""The frameworks that programs can be submitted for: their names, sizes and priorities."""

from collections.abc import Mapping
from typing import Any

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError

ELSEWHERE = ("keras", "tensorflow", "caffe", "chainer", "mxnet")
"""Parts of the names of WMLA's other frameworks, in lower case."""

ABOUT: Mapping[Framework, tuple[str, str, str]] = {
    Framework.ELASTIC: (
        "ElasticPyTorchTrain",
        "Elastic distributed training: FabricModel.train() on workers that come and go.",
        "Example: --exec-start edtPyTorch --model-dir DIR --model-main main.py --numWorker 4",
    ),
    Framework.SINGLE: (
        "SingleNodePytorchTrain",
        "The script in one process, with the devices of --workerDeviceNum.",
        "Example: --exec-start PyTorch --model-dir DIR --model-main main.py --workerDeviceNum 1",
    ),
    Framework.GANG: (
        "DistPyTorchTrain",
        "The script in several processes that torch.distributed joins, all or none.",
        "Example: --exec-start distPyTorch --model-dir DIR --model-main main.py --numWorker 2",
    ),
}
"""The name of a framework's applications, and what it is."""

USUAL_PRIORITY = 5000
_STEP, _MOST = 5, 1000


def named(name: str) -> Framework:
    """The framework of that name; raises `ArgumentsError` if there is none, or not here."""
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
        "desc": list(ABOUT[framework][1:]),
        "frameworkVersion": "",
        "distributeStrategy": "",
        "numPs": 0,
    }


def modern(framework: Framework, pool: int) -> dict[str, Any]:
    """A framework in the manner of 2.x; `pool` is the number of devices that there are."""
    is_single = framework is Framework.SINGLE
    return classic(framework) | {
        "deployMode": "client",
        "hasTask0": framework.is_elastic,
        "execMode": "single" if is_single else "distributed",
        "appName": app_name(framework),
        "numWorkers": 1,
        "maxWorkers": 1 if is_single else max(pool, 1),
        "workerMemory": "",
        "frameworkCmdGenerator": "",
        "backend": "pytorch",
        "prebuiltModelMain": "",
        "prebuiltModelDir": "",
        "exports": [],
    }


def bounds(framework: Framework, arguments: Arguments, pool: int) -> tuple[int, int]:
    """The least and the most devices of a job, where the pool has `pool`.

    An elastic job starts with one and grows to `maxWorkers`, else to all devices of its workers, else to the
    whole pool. The others get all that they ask for at once.
    """
    devices = arguments.devices or 1
    if framework.is_elastic:
        return 1, arguments.most or (arguments.workers or 0) * devices or max(pool, 1)
    workers = arguments.workers or 1
    if framework is Framework.SINGLE and workers > 1:
        raise ArgumentsError(
            f"--numWorker {workers}: {framework} is one process; give it devices with "
            f"--workerDeviceNum, or use {Framework.GANG} or {Framework.ELASTIC}"
        )
    return workers * devices, workers * devices


def priority(asked: int | None) -> int:
    """EDT's priority, -1000 to 1000, for one of WMLA's, 1 to 10000 around 5000; in the same order."""
    distance = 0 if asked is None else (asked - USUAL_PRIORITY) // _STEP
    return max(-_MOST, min(_MOST, distance))


def asked_priority(own: int) -> int:
    """WMLA's priority for one of EDT's: what `priority` makes that one of."""
    return USUAL_PRIORITY + own * _STEP
