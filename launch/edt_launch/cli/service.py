"""The service's REST interface, as methods."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import quote

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError, NonsenseError, NoSuchJobError, RefusedError
from edt_launch.cli.model import Host, Job
from edt_launch.cli.transport import Answer, Body, Query, Transport

Json = dict[str, Any]
PAGE = 500
"""Jobs of one answer."""
EXPERIMENTS_PAGE = 100
"""Experiments of one answer."""
LEAST_PREFIX = 3
"""Characters of an id that may stand for it."""


class Service:
    """What can be asked of a service; every method raises a ClientError when it does not work out."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def about(self) -> Json:
        """Version, and who asks: `version`, `user`, `is_admin`."""
        return self._object("GET", "/")

    # Jobs

    def jobs(
        self, *, everything: bool = False, state: str | None = None, owner: str | None = None
    ) -> Iterator[Json]:
        """Live jobs and those that ended in the last hour, or all; oldest first."""
        query: Query = {"all": everything or None, "state": state, "owner": owner, "limit": PAGE}
        return self._pages("/jobs", "jobs", query)

    def job(self, job_id: str) -> Json:
        """One job."""
        return cast("Json", self._of_job("GET", job_id, ""))

    def submit(self, body: Body, *, key: str | None = None, dry_run: bool = False) -> Json:
        """Queue a job, or say what that would change; asked again with the same key it is queued once."""
        answer = self._transport.send(
            "POST",
            "/jobs",
            query={"dry_run": dry_run or None},
            body=body,
            headers={"Idempotency-Key": key or secrets.token_hex(16)},
            timeout=None,
        ).json()
        return _checked(answer)

    def change(self, job_id: str, changes: Mapping[str, Any]) -> Json:
        """Change a job's min, max, priority, weight or name."""
        return cast("Json", self._of_job("PATCH", job_id, "", content=dict(changes)))

    def ask(self, job_id: str, wish: str) -> Json:
        """`stop`, `pause` or `resume` a job."""
        return cast("Json", self._of_job("POST", job_id, f"/{wish}"))

    def why(self, job_id: str) -> Json:
        """Why a job has its size."""
        return cast("Json", self._of_job("GET", job_id, "/why"))

    def logs(self, job_id: str, *, rank: int | None, follow: bool, tail: int | None) -> Answer:
        """A job's output; it ends with the job if it is followed."""
        query: Query = {"rank": rank, "follow": follow or None, "tail": tail}
        headers = {"Accept": "text/plain"}
        with _no_such_job(job_id):
            return self._transport.send(
                "GET",
                f"/jobs/{_part(job_id, 'job')}/logs",
                query=query,
                headers=headers,
                timeout=None if follow else 30.0,
            )

    def results(self, job_id: str) -> Answer:
        """What a job has made, and its logs: a tar.gz."""
        return self._archive(job_id, "/results")

    def checkpoints(self, job_id: str) -> Json:
        """A job's checkpoints, oldest first."""
        return cast("Json", self._of_job("GET", job_id, "/checkpoints"))

    def checkpoint(self, job_id: str, name: str) -> Answer:
        """A checkpoint: a tar.gz."""
        return self._archive(job_id, f"/checkpoints/{_part(name, 'checkpoint')}")

    def resolve(self, text: str) -> str:
        """The id that `text` stands for: the id, its beginning, or the name of a job.

        Raises:
            NoSuchJobError: there is none.
            MistakenError: there are several, or `text` is empty.
        """
        try:
            return str(self.job(text)["id"])
        except NoSuchJobError as error:
            found = meant(text, self.jobs()) or meant(text, self.jobs(everything=True))
            if not found:
                raise error from None
            if len(found) > 1:
                ids = ", ".join(job.id for job in found[:5])
                raise MistakenError(
                    f"{text!r} may be any of {len(found)} jobs: {ids}", "give the id"
                ) from None
            return found[0].id

    # Experiments

    def experiments(self) -> Iterator[Json]:
        """All experiments, oldest first."""
        return self._pages("/experiments", "experiments", {"limit": EXPERIMENTS_PAGE})

    def experiment(self, name: str) -> Json:
        """One experiment, by its id or name, and its trials."""
        return self._object("GET", f"/experiments/{_part(name, 'experiment')}")

    def create_experiment(self, body: Body) -> Json:
        """Create an experiment."""
        return _checked(self._transport.send("POST", "/experiments", body=body, timeout=None).json())

    def stop_experiment(self, name: str) -> Json:
        """Stop an experiment and its trials."""
        return self._object("POST", f"/experiments/{_part(name, 'experiment')}/stop")

    def remove_experiment(self, name: str) -> None:
        """Delete an experiment that has ended, and its trials."""
        self._transport.send("DELETE", f"/experiments/{_part(name, 'experiment')}").json()

    # Machines and shares

    def cluster(self) -> Json:
        """Hosts, their devices, and who has which."""
        return self._object("GET", "/cluster")

    def hosts(self) -> tuple[Host, ...]:
        """The machines, with the jobs that have their devices."""
        return tuple(model.host(data) for data in model.many(self.cluster(), "hosts"))

    def drain(self, host: str, *, undo: bool) -> Json:
        """Let a host's workers move away, or let workers come back."""
        wish = "undrain" if undo else "drain"
        return self._object("POST", f"/hosts/{_part(host, 'host')}/{wish}")

    def shares(self) -> Json:
        """The owners' tree."""
        answer = self._transport.send("GET", "/shares").json()
        return answer if isinstance(answer, dict) else {"shares": answer}

    def set_share(self, name: str, changes: Mapping[str, Any]) -> Json:
        """Change a node of the owners' tree, or make one."""
        return self._object("PUT", f"/shares/{_part(name, 'owner')}", content=dict(changes))

    # Users and tokens

    def users(self) -> Json:
        """Everybody who may use the service."""
        answer = self._transport.send("GET", "/users").json()
        return answer if isinstance(answer, dict) else {"users": answer}

    def add_user(self, name: str, *, is_admin: bool) -> Json:
        """Let somebody use the service."""
        return self._object("POST", "/users", content={"name": name, "is_admin": is_admin})

    def remove_user(self, name: str) -> None:
        """Let somebody no longer use the service."""
        self._transport.send("DELETE", f"/users/{_part(name, 'user')}").json()

    def set_password(self, name: str, password: str, *, revoke_tokens: bool = False) -> None:
        """Give a user a password for WMLA's interfaces; perhaps revoke their other tokens, too."""
        path = f"/users/{_part(name, 'user')}/password"
        content: Json = {"password": password}
        if revoke_tokens:
            content["revoke_tokens"] = True
        self._transport.send("PUT", path, content=content).json()

    def tokens(self) -> Json:
        """The asking user's tokens, without what is secret."""
        answer = self._transport.send("GET", "/tokens").json()
        return answer if isinstance(answer, dict) else {"tokens": answer}

    def add_token(self, content: Mapping[str, Any]) -> Json:
        """A new token; only this answer contains it."""
        return self._object("POST", "/tokens", content=dict(content))

    def remove_token(self, token_id: str, *, only: bool = False) -> None:
        """Let a token open nothing any more, nor what was made with it, unless it `only`."""
        query = "?only=1" if only else ""
        self._transport.send("DELETE", f"/tokens/{_part(token_id, 'token')}{query}").json()

    # How

    def _object(self, method: str, path: str, *, query: Query | None = None, content: Any = None) -> Json:
        return _checked(self._transport.send(method, path, query=query, content=content).json())

    def _pages(self, path: str, name: str, query: Query) -> Iterator[Json]:
        after: str | None = None
        while True:
            answer = self._object("GET", path, query={**query, "after": after})
            yield from cast("Sequence[Json]", model.many(answer, name))
            after = answer.get("next")
            if after is None:
                return

    def _archive(self, job_id: str, path: str) -> Answer:
        headers = {"Accept": "application/gzip"}
        return self._transport.send("GET", f"/jobs/{_part(job_id, 'job')}{path}", headers=headers)

    def _of_job(self, method: str, job_id: str, path: str, *, content: Any = None) -> Any:
        with _no_such_job(job_id):
            return self._object(method, f"/jobs/{_part(job_id, 'job')}{path}", content=content)


def meant(text: str, jobs: Iterable[Json]) -> list[Job]:
    """The jobs that a name or the beginning of an id may stand for; a live one of that name before others."""
    parsed = [model.job(data) for data in jobs]
    found = [job for job in parsed if job.name == text]
    live = [job for job in found if not job.has_ended]
    if not found and len(text) >= LEAST_PREFIX:
        return [job for job in parsed if job.id.startswith(text)]
    return live if len(live) == 1 else found


def _part(name: str, kind: str) -> str:
    """A name as a part of an address, which an empty one is not."""
    if not name:
        raise MistakenError(f"the name of a {kind} is empty", f"name the {kind}")
    return quote(name, safe="")


@contextmanager
def _no_such_job(job_id: str) -> Iterator[None]:
    """Turn the service's 404 into an error with an exit code of its own."""
    try:
        yield
    except RefusedError as error:
        if error.status != 404:
            raise
        raise NoSuchJobError(f"there is no job {job_id!r}", "see 'edt ps --all'", error.status) from None


def _checked(answer: Any) -> Json:
    if not isinstance(answer, dict):
        raise NonsenseError(
            f"the service answered {type(answer).__name__} instead of an object",
            "client and service may differ in version",
        )
    return answer
