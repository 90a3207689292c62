"""``edt stop``, ``edt pause`` and ``edt resume``: what a user may want of jobs."""

from edt_launch.client.screen import note
from edt_launch.client.session import AsJson, LiveJobs, connect, print_json


def stop(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """End jobs for good; what they have saved stays."""
    _ask("stop", jobs, as_json)


def pause(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """Have jobs save their state and give up their devices, until they are resumed."""
    _ask("pause", jobs, as_json)


def resume(jobs: LiveJobs, as_json: AsJson = False) -> None:
    """Let paused jobs go on from where they were, as soon as there are devices for them."""
    _ask("resume", jobs, as_json)


def _ask(wish: str, names: list[str], as_json: bool) -> None:
    """All names are looked up first: a mistyped one changes nothing."""
    service = connect()
    ids = [service.resolve(name) for name in names]
    answers = [service.ask(job_id, wish) for job_id in dict.fromkeys(ids)]
    if as_json:
        print_json({"jobs": answers})
        return
    for answer in answers:
        note(f"{answer.get('id')} {answer.get('state')}" + _reason(answer.get("reason")))


def _reason(reason: object) -> str:
    return f": {reason}" if reason else ""
