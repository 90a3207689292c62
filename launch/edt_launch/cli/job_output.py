"""A job's output as it comes, through resizes and restarts of the service.

After a broken connection the output is asked for again from its beginning, and as many lines of each rank as
have been seen are skipped: lines of one rank never change their order, those of different ranks may.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from edt_launch.cli import model
from edt_launch.cli.errors import UnreachableError
from edt_launch.cli.service import Service

RETRY = 1.0
RANK = re.compile(r"\[([^\]]{1,40})\] ")
"""What is in front of a line when the lines of all ranks are shown."""


def output(
    service: Service,
    job_id: str,
    *,
    rank: int | None = None,
    follow: bool = False,
    tail: int | None = None,
    told: Callable[[str], None] = lambda text: None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """The lines of a job's workers, each with its rank in front unless one rank was asked for.

    Args:
        service, job_id: where the job is, and which one.
        rank: only this worker's lines.
        follow: go on until the job ends, also when the service is started again meanwhile.
        tail: only the last lines that there are now, so many, and what comes.
        told: is told about connections that are lost and found.
        pause: waits so many seconds.

    Raises:
        ClientError: the first connection fails, or any later one for another reason than an absent service.
    """
    if not follow:
        yield from service.logs(job_id, rank=rank, tail=tail).lines()
        return
    seen: Counter[str] = Counter()
    if tail is not None:
        yield from deque(_unseen(service.logs(job_id, rank=rank).lines(), seen), tail)
    answer = service.logs(job_id, rank=rank, follow=True)
    is_lost = False
    while True:
        try:
            if is_lost:
                answer = service.logs(job_id, rank=rank, follow=True)
                told("the service is back")
                is_lost = False
            yield from _unseen(answer.lines(), seen)
            if model.job(service.job(job_id)).has_ended:
                return
            raise UnreachableError("the service ended the connection")
        except UnreachableError as error:
            if not is_lost:
                told(f"{error.text}; waiting for it")
            is_lost = True
        pause(RETRY)


def _unseen(lines: Iterable[str], seen: Counter[str]) -> Iterator[str]:
    """The lines after those that were counted in `seen`; counts them, too."""
    skipped = seen.copy()
    for line in lines:
        label = RANK.match(line)
        source = label[1] if label else ""
        if skipped[source]:
            skipped[source] -= 1
        else:
            seen[source] += 1
            yield line
