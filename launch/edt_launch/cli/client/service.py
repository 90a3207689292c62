"""The service's REST interface: addresses, pages, and what its answers mean."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import quote

from edt_launch.cli import model
from edt_launch.cli.client.transport import Answer, Body, Http
from edt_launch.cli.errors import MistakenError, NonsenseError, NoSuchJobError, RefusedError
from edt_launch.cli.model import Host, ListedJob

Json = dict[str, Any]
PAGES = {"jobs": 500}
"""Things of one answer; of others a hundred."""
ARCHIVES = "application/gzip, application/zip"
LEAST_PREFIX = 3
"""Characters of an id that may stand for it."""


class Service:
    """What can be asked of a service; every method raises a ClientError when it does not work out."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def send(self, method: str, *parts: str, **options: Any) -> Answer:
        """The answer of an address, given as its parts; `options` are those of `Http.send`."""
        try:
            return self._http.send(method, _address(parts), **options)
        except RefusedError as error:
            is_job = parts[:1] == ("jobs",) and len(parts) in (2, 3) and parts[-1] != "results"
            if error.status not in (404, 405) or not is_job:  # 405: the id looks like a part of a path
                raise
            raise NoSuchJobError(f"there is no job {parts[1]!r}", "see 'edt ps --all'", 404) from None

    def call(self, method: str, *parts: str, **options: Any) -> Json:
        """The object that an address answers."""
        answer = self.send(method, *parts, **options).json()
        if not isinstance(answer, dict):
            raise NonsenseError(
                f"the service answered {type(answer).__name__} instead of an object", model.VERSIONS
            )
        return answer

    def order(self, method: str, *parts: str, **options: Any) -> None:
        """Have something done that nothing is to be answered to."""
        self.send(method, *parts, **options).json()

    def pages(self, name: str, /, **query: str | float | None) -> Iterator[Json]:
        """All things of a list, page by page, oldest first."""
        after: str | None = None
        while True:
            answer = self.call("GET", name, query={**query, "limit": PAGES.get(name, 100), "after": after})
            yield from cast("Sequence[Json]", model.many(answer, name))
            after = answer.get("next")
            if after is None:
                return

    def about(self) -> Json:
        """Version, and who asks: `version`, `user`, `is_admin`."""
        return self.call("GET")

    def jobs(self, *, everything: bool = False, **wanted: str | float | None) -> Iterator[Json]:
        """Live jobs and those that ended in the last hour, or all; oldest first.

        `wanted` are further parameters of `GET /jobs`; None for those that do not matter.
        """
        return self.pages("jobs", all=everything or None, **wanted)

    def job(self, job_id: str) -> Json:
        """One job."""
        return self.call("GET", "jobs", job_id)

    def submit(self, body: Body, *, key: str | None = None, dry_run: bool = False) -> Json:
        """Queue a job, or say what that would change; asked again with the same key it is queued once."""
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        query = {"dry_run": dry_run or None}
        return self.call("POST", "jobs", query=query, body=body, headers=headers, timeout=None)

    def logs(
        self, job_id: str, *, rank: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Answer:
        """A job's output; it ends with the job if it is followed."""
        query = {"rank": rank, "follow": follow or None, "tail": tail}
        headers = {"Accept": "text/plain"}
        return self.send("GET", "jobs", job_id, "logs", query=query, headers=headers, is_endless=follow)

    def found_lines(self, job_id: str, **wanted: str | float | None) -> Iterator[str]:
        """The lines of a job's output that a search finds; `wanted` are its parameters."""
        after: int | None = None
        while True:
            query = {**wanted, "after": after}
            answer = self.call("GET", "jobs", job_id, "logs", "search", query=query)
            yield from (str(hit["text"]) for hit in cast("Sequence[Json]", model.many(answer, "hits")))
            after = answer.get("next")
            if after is None:
                return

    def course(self, job_id: str, names: Sequence[str], points: int) -> Json:
        """What a job has reported over time, thinned out: a list for each field."""
        return self.call("GET", "jobs", job_id, "metrics", query={"name": list(names), "points": points})

    def archive(self, job_id: str, *parts: str, **query: str | Sequence[str] | None) -> Answer:
        """An archive of what a job has made; `query` says of which part of it, and of which kind."""
        return self.send("GET", "jobs", job_id, *parts, query=query, headers={"Accept": ARCHIVES})

    def hosts(self) -> tuple[Host, ...]:
        """The machines, with the jobs that have their devices."""
        return tuple(map(model.host, model.many(self.call("GET", "hosts"), "hosts")))

    def resolve(self, text: str) -> str:
        """The id that `text` stands for: the id, its beginning, or the name of a single job."""
        try:
            return str(self.job(text)["id"])
        except NoSuchJobError as error:
            jobs = self._meant(text) or self._meant(text, everything=True)
            if not jobs:
                raise error from None
            if len(jobs) > 1:
                ids = ", ".join(job.id for job in jobs[:5])
                raise MistakenError(
                    f"{text!r} may be any of {len(jobs)} jobs: {ids}", "give the id"
                ) from None
            return jobs[0].id

    def _meant(self, text: str, *, everything: bool = False) -> list[ListedJob]:
        """The jobs that a name or the beginning of an id may stand for; a live one before others."""
        jobs = list(map(model.job, self.jobs(everything=everything)))
        named = [job for job in jobs if job.name == text]
        live = [job for job in named if not job.has_ended]
        if not named and len(text) >= LEAST_PREFIX:
            return [job for job in jobs if job.id.startswith(text)]
        return live if len(live) == 1 else named


def _address(parts: tuple[str, ...]) -> str:
    if "" in parts:
        of = parts[parts.index("") - 1]
        kind = "owner" if of == "shares" else of.removesuffix("s")
        raise MistakenError(f"the name of a {kind} is empty", f"name the {kind}")
    return "/" + "/".join(quote(part, safe="") for part in parts)
