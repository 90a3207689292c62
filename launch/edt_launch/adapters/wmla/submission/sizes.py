"""How many devices a submission asks for, and which of EDT's priorities its own one is."""

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.submission.args import Arguments, ArgumentsError

USUAL_PRIORITY = 5000
"""What WMLA gives jobs that name none."""

_STEP = 5
_MOST = 1000


def bounds(framework: Framework, arguments: Arguments, pool: int) -> tuple[int, int]:
    """The least and the most devices of a job.

    An elastic job starts with one and grows to `maxWorkers`, else to all devices of its workers, else to the
    whole pool. The others get all that they ask for at once.

    Args:
        framework: of the job.
        arguments: what the submission says.
        pool: devices that there are.

    Raises:
        ArgumentsError: it asks for what the framework cannot do.
    """
    devices = arguments.devices or 1
    match framework:
        case Framework.ELASTIC:
            asked = arguments.workers and arguments.workers * devices
            return 1, arguments.most or asked or max(pool, 1)
        case Framework.SINGLE:
            if (arguments.workers or 1) > 1:
                raise ArgumentsError(
                    f"--numWorker {arguments.workers}: {framework} is one process; give it devices with "
                    f"--workerDeviceNum, or use {Framework.GANG} or {Framework.ELASTIC}"
                )
            return devices, devices
        case Framework.GANG:
            number = (arguments.workers or 1) * devices
            return number, number


def priority(asked: int | None) -> int:
    """EDT's priority, -1000 to 1000, for one of WMLA's, 1 to 10000 around 5000; in the same order."""
    distance = 0 if asked is None else (asked - USUAL_PRIORITY) // _STEP
    return max(-_MOST, min(_MOST, distance))


def asked_priority(own: int) -> int:
    """WMLA's priority for one of EDT's: what `priority` makes that one of."""
    return USUAL_PRIORITY + own * _STEP
