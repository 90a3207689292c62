"""``edt stop``, ``edt pause`` and ``edt resume``: the desired state of jobs."""

from edt_launch.cli.model import ENDED
from edt_launch.cli.screen import note, visible
from edt_launch.cli.service import Json
from edt_launch.cli.session import AsJson, LiveJobs, connect, print_json

DONE = {"stop": "stopped", "pause": "paused", "resume": "resumed"}
UNDER_WAY = {"stop": ENDED | {"stopping"}, "pause": {"pausing", "paused"}}
"""States of a job that does what was asked; for `resume` all others than those of `pause`."""


def stop(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """End jobs for good; what they have saved stays."""
    _ask("stop", jobs, as_json)


def pause(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """Have jobs save their state and give up their devices, until they are resumed."""
    _ask("pause", jobs, as_json)


def resume(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """Let paused jobs go on from where they were, as soon as there are devices for them."""
    _ask("resume", jobs, as_json)


def _ask(verb: str, names: list[str], as_json: bool) -> None:
    """All names are looked up first: a mistyped one changes nothing."""
    service = connect()
    ids = [service.resolve(name) for name in names]
    answers = [service.ask(job_id, verb) for job_id in dict.fromkeys(ids)]
    if as_json:
        print_json({"jobs": answers})
        return
    for answer in answers:
        note(told(verb, answer))


def told(verb: str, job: Json) -> str:
    """What a job does about a request, in a line. A state that is about to end needs no reason."""
    state = job.get("state")
    is_heard = state in UNDER_WAY[verb] if verb in UNDER_WAY else state not in UNDER_WAY["pause"]
    if not is_heard:
        return f"{job.get('id')} is {state} and is going to be {DONE[verb]}"
    reason = f": {visible(job['reason'])}" if job.get("reason") else ""
    return f"{job.get('id')} {state}{reason}"
