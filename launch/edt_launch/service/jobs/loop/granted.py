"""What a job was granted: as its allocation file says, or its row."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from edt_launch.core.errors import AllocationError, is_passing
from edt_launch.core.files import plain_files
from edt_launch.service.app.home import JobDir
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.jobs.allocator_input import held
from edt_launch.service.jobs.loop import device_grant
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.observed import ObservedJob
from edt_launch.service.jobs.records import JobRecord

log = logging.getLogger(__name__)


def most_workers(job: ObservedJob, hosts: Sequence[HostRecord]) -> int:
    """How many workers the job can have at most: as declared, and as there are devices."""
    declared: int = max((job.record.max, *(job.record.bounds or ())))
    devices = sum(len(host.devices) for host in hosts)
    return max(1, min(declared, max(devices, job.grant.size)))


def stored_grant(record: JobRecord) -> DeviceGrant:
    """What the job's row says."""
    return DeviceGrant(record.generation, held(record.held), held(record.leaving))


def granted(record: JobRecord, paths: JobDir) -> DeviceGrant:
    """What the job's allocation file says; what its row says, if that makes no sense.

    Raises:
        OSError: the machine is in trouble; the file may be right.
    """
    try:
        grant = device_grant.read(plain_files.read(paths.allocation).decode(errors="replace"))
    except FileNotFoundError:
        return DeviceGrant(record.generation)
    except (OSError, AllocationError) as error:
        if is_passing(error):
            raise
        log.warning("%s: the allocation file cannot be read, the database is believed: %s", record.id, error)
        return stored_grant(record)
    return replace(grant, generation=max(grant.generation, record.generation))
