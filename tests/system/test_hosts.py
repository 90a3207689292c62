"""Jobs over several hosts whose network and power fail: network namespaces, real ssh."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import host_bed
import psutil
import pytest
from host_bed import HostBed

from harness import SLOW, TRACED, ElasticJob, Undisturbed
from tiers import full

THREE = ("-H", "h1:1,h2:1,h3:1")


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostBed]:
    missing = host_bed.missing()
    if missing is not None:
        pytest.skip(missing)
    with host_bed.hosts(tmp_path, 4) as hosts:
        monkeypatch.setenv("PATH", hosts.variables()["PATH"])
        yield hosts


def back(job: ElasticJob) -> None:
    """The host's worker is a member of the world again."""
    job.until_size(3)
    job.until_more_steps(5)


@pytest.mark.parametrize(
    "fault, mend, reason",
    [
        (lambda bed: bed.unplug("h2"), lambda bed: bed.plug("h2"), "nothing has come from h2 for 3 s"),
        full(lambda bed: bed.power_off("h2"), None, "nothing has come from h2 for 3 s"),
        full(lambda bed: bed.freeze("h2"), lambda bed: bed.freeze("h2", False), "nothing has come from h2"),
        full(lambda bed: bed.part("h2", "h3"), None, "h3 and h2 do not reach each other"),
    ],
    ids=["unplugged", "powered off", "frozen", "parted from a peer"],
)
def test_a_host_that_fails_costs_its_workers_and_nothing_else(
    bed: HostBed,
    job: ElasticJob,
    undisturbed: Undisturbed,
    fault: Callable[[HostBed], None],
    mend: Callable[[HostBed], None] | None,
    reason: str,
) -> None:
    job.start(TRACED, job.results, *SLOW, options=THREE, prefix=bed.on("h0", []))
    job.until_size(3)
    job.until_more_steps(5)
    fault(bed)
    job.until_size(2)
    job.until_more_steps(5)
    if mend is not None:
        mend(bed)
        back(job)
    assert job.end() == 0, job.stderr
    assert reason in job.stderr
    undisturbed.check(job, repeated=len(job.events("world")))
    assert job.survivors() == []
    left = [process for host in bed.names for process in bed.processes(host)]
    assert psutil.wait_procs(left, timeout=60)[1] == []


@pytest.mark.full
def test_a_job_that_starts_on_one_host_goes_on_on_others_whose_cards_have_other_names(
    bed: HostBed, job: ElasticJob, undisturbed: Undisturbed
) -> None:
    job.allocate(1, "h0")
    job.start(TRACED, job.results, *SLOW, prefix=bed.on("h0", []))
    for size, hosts in enumerate(["h0:1", "h0:1\nh1:1", "h0:1\nh1:1\nh2:1", "h1:1\nh2:1"], 1):
        job.write_allocation(f"# edt allocation v1 generation={10 + size}\n{hosts}\n")
        job.until_size(size if size < 4 else 2)
        job.until_more_steps(3)
    assert job.end() == 0, job.stderr
    undisturbed.check(job)


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostBed]:
    """Hosts each of which has a disk of its own."""
    missing = host_bed.missing()
    if missing is not None:
        pytest.skip(missing)
    with host_bed.hosts(tmp_path, 4, disk=tmp_path / "disk") as hosts:
        monkeypatch.setenv("PATH", hosts.variables()["PATH"])
        yield hosts


def test_hosts_without_a_shared_disk_get_the_code_and_the_newest_checkpoint_survives_its_host(
    apart: HostBed, job: ElasticJob, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    disk, seen = tmp_path / "disk", apart.disk_of("h0")
    (seen / "code").mkdir()
    shutil.copy(TRACED, seen / "code")
    job.out = disk / "out"
    job.allocate(1, "h1")
    options = ("--checkpoint-interval", "0")
    job.start(disk / "code" / TRACED.name, job.results, *SLOW, options=options, prefix=apart.on("h0", []))
    job.out = seen / "out"
    job.until(lambda: len(job.events("checkpointed")) >= 2)
    apart.power_off("h1")
    job.allocate(1, "root@h2")
    job.until(lambda: job.events("restored"))
    job.until_more_steps(5)
    assert job.end() == 0, job.stderr
    undisturbed.check_final(job.results)
    last = job.events("checkpointed")[-1]
    assert last["last"]
    assert (apart.disk_of("h0") / Path(last["path"]).relative_to(disk) / "state.pt").is_file()
    assert not list(apart.disk_of("h2").glob("cache/edt/jobs/*"))
    assert job.survivors() == []
