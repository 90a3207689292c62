"""`/api/v1/`, `/healthz` and `/metrics`: the service itself."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from edt_launch import __version__
from edt_launch.service.api import schemas, views
from edt_launch.service.api.context import Context, Here, User
from edt_launch.service.states import State

router = APIRouter(tags=["service"])
outside = APIRouter(tags=["service"])
"""What is not below /api/v1."""


@router.get("/", response_model=schemas.About)
def about(user: User) -> Any:
    """The service's version, and who you are to it."""
    return {"version": __version__, "user": user.name, "is_admin": user.is_admin}


@outside.get("/healthz", response_model=schemas.Health)
def health(here: Here) -> Any:
    """Whether the service and its database answer."""
    here.store.memory.get("health")
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
        counts = store.jobs.counts()
        jobs = GaugeMetricFamily("edt_jobs", "Jobs by state.", labels=["state"])
        for state in State:
            jobs.add_metric([state], counts.get(state, 0))
        yield jobs
        live = store.jobs.live()
        cluster = views.cluster(store.hosts.all(), live)
        devices = GaugeMetricFamily("edt_devices", "Devices by use.", labels=["use"])
        for use in ("used", "free", "down"):
            devices.add_metric([use], cluster[use])
        yield devices
        hosts = GaugeMetricFamily("edt_hosts", "Hosts by state.", labels=["state"])
        states = Counter(host["state"] for host in cluster["hosts"])
        for name in ("up", "down", "draining"):
            hosts.add_metric([name], states[name])
        yield hosts
        yield from _by_owner(live)


def _by_owner(live: Any) -> Iterator[Metric]:
    sizes: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for job in live:
        sizes[job.owner] += job.size
        waiting[job.owner] += job.state is State.QUEUED
    workers = GaugeMetricFamily("edt_workers", "Workers of each user's jobs.", labels=["owner"])
    queued = GaugeMetricFamily("edt_queued_jobs", "Jobs of each user that wait.", labels=["owner"])
    for owner in sizes:
        workers.add_metric([owner], sizes[owner])
        queued.add_metric([owner], waiting[owner])
    yield workers
    yield queued


def registry_of(context: Context) -> CollectorRegistry:
    """A registry with the service's figures and those of its process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(Figures(context))
    return registry
