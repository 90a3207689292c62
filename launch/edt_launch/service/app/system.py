"""`/api/v1/`, `/healthz` and `/metrics`: the service itself."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from pydantic import BaseModel

from edt_launch import __version__
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import answers
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.states import State

router = APIRouter(tags=["service"])
outside = APIRouter(tags=["service"])
"""What is not below /api/v1."""


class About(BaseModel):
    """The service, and who asks."""

    version: str
    user: str
    is_admin: bool


class Health(BaseModel):
    """Whether the service works."""

    status: Literal["ok"]


@router.get("/", response_model=About)
def about(user: CurrentUser) -> Any:
    """The service's version, and who you are to it."""
    return {"version": __version__, "user": user.name, "is_admin": user.is_admin}


@outside.get("/healthz", response_model=Health)
def health(context: ContextDep) -> Any:
    """Whether the service and its database answer."""
    context.store.memory.get("health")
    return {"status": "ok"}


@outside.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(
        generate_latest(request.app.state.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
    )


class Figures(Collector):
    """Jobs and devices at the moment, read when they are asked for."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def collect(self) -> Iterator[Metric]:
        """The figures."""
        store = self._context.store
        counts, live = store.jobs.counts(), store.jobs.live()
        cluster = answers.cluster(store.hosts.all(), live)
        hosts = Counter(host["state"] for host in cluster["hosts"])
        workers: Counter[str] = Counter()
        queued: Counter[str] = Counter()
        for job in live:
            workers[job.owner] += job.size
            queued[job.owner] += job.state is State.QUEUED
        yield _gauge("edt_jobs", "Jobs by state.", "state", {state: counts.get(state, 0) for state in State})
        uses = {use: cluster[use] for use in ("used", "free", "down")}
        yield _gauge("edt_devices", "Devices by use.", "use", uses)
        states = {state: hosts[state] for state in ("up", "down", "draining")}
        yield _gauge("edt_hosts", "Hosts by state.", "state", states)
        yield _gauge("edt_workers", "Workers of each user's jobs.", "owner", workers)
        yield _gauge("edt_queued_jobs", "Jobs of each user that wait.", "owner", queued)


def _gauge(name: str, description: str, label: str, values: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, description, labels=[label])
    for of, value in values.items():
        gauge.add_metric([of], value)
    return gauge


def registry_of(context: Context) -> CollectorRegistry:
    """A registry with the service's figures and those of its process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(Figures(context))
    return registry
