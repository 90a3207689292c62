"""Jobs over several hosts whose network and power fail: network namespaces, real ssh."""

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import host_bed
import psutil
import pytest
from host_bed import HostBed

from harness import BIN, PATIENCE, POLL, SLOW, TRACED, ElasticJob, Undisturbed, run
from tiers import full


@contextlib.contextmanager
def four_hosts(folder: Path, disk: Path | None = None) -> Iterator[HostBed]:
    missing = host_bed.missing()
    if missing is not None:
        pytest.skip(missing)
    with host_bed.hosts(folder, 4, disk=disk) as hosts, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", hosts.variables()["PATH"])
        yield hosts


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[HostBed]:
    with four_hosts(tmp_path) as hosts:
        yield hosts


@pytest.mark.parametrize(
    "count, fault, mend, reason",
    [
        (2, lambda bed: bed.unplug("h2"), lambda bed: bed.plug("h2"), "nothing has come from h2 for 3 s"),
        full(3, lambda bed: bed.power_off("h2"), None, "nothing has come from h2 for 3 s"),
        full(
            2, lambda bed: bed.freeze("h2"), lambda bed: bed.freeze("h2", False), "nothing has come from h2"
        ),
        full(3, lambda bed: bed.part("h2", "h3"), None, "h3 and h2 do not reach each other"),
    ],
    ids=["unplugged", "powered off", "frozen", "parted from a peer"],
)
def test_a_host_that_fails_costs_its_workers_and_nothing_else_also_behind_a_firewall(
    bed: HostBed,
    job: ElasticJob,
    undisturbed: Undisturbed,
    count: int,
    fault: Callable[[HostBed], None],
    mend: Callable[[HostBed], None] | None,
    reason: str,
) -> None:
    bed.open_ports("20000-20099")
    hosts = ",".join(f"h{number}:1" for number in range(1, count + 1))
    options = ("-H", hosts, "--port-range", "20000:20099")
    job.start(TRACED, job.results, *SLOW, options=options, prefix=bed.on("h0", []))
    job.until_size(count)
    job.until_more_steps(2)
    fault(bed)
    job.until_size(count - 1)
    job.until_more_steps(2)
    if mend is not None:
        mend(bed)
        job.until_size(count)  # the host's worker is a member of the world again
        job.until_more_steps(2)
    assert job.end() == 0, job.stderr
    assert reason in job.stderr
    undisturbed.check(job, repeated=len(job.events("world")))
    assert job.survivors() == []
    left = [process for host in bed.names for process in bed.processes(host)]
    assert psutil.wait_procs(left, timeout=PATIENCE)[1] == []


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


@pytest.mark.full
def test_doctor_shows_which_hosts_reach_each_other(bed: HostBed) -> None:
    def examined(*options: str) -> list[list[str]]:
        words = [str(BIN / "edt"), "doctor", "h1,h2,h3", *options]
        done = subprocess.run(bed.on("h0", words), capture_output=True, text=True, check=False)
        return [line.split() for line in done.stdout.splitlines()]

    every = [["localhost", "-", "yes", "yes", "yes"], ["h1", "yes", "-", "yes", "yes"]]
    assert examined()[1:3] == every
    bed.part("h2", "h3")
    bed.open_ports("20000-20099")
    assert examined()[1] == ["localhost", "-", "NO", "NO", "NO"]
    found = examined("--port-range", "20000:20099")
    assert found[1:5] == [*every, ["h2", "yes", "yes", "-", "NO"], ["h3", "yes", "yes", "NO", "-"]]
    assert " ".join(found[5]) == (
        "fail h2 does not reach h3 -> check route and firewall between them: TCP ports 20000:20099"
    )


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[HostBed]:
    """Hosts each of which has a disk of its own."""
    with four_hosts(tmp_path, tmp_path / "disk") as hosts:
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


@pytest.mark.full
def test_a_host_without_the_script_is_done_without_until_it_has_it(
    apart: HostBed, job: ElasticJob, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    def copy(*hosts: str) -> None:
        for host in hosts:
            shutil.copy(TRACED, apart.disk_of(host))

    copy("h0", "h1")
    script = tmp_path / "disk" / TRACED.name
    job.start(script, job.results, *SLOW, options=("-H", "h1:1,h2:1"), prefix=apart.on("h0", []))
    job.until_size(1)
    job.until(lambda: f"h2 has no {script}: put it on that host, too" in job.stderr)
    copy("h2")
    job.until_size(2)
    job.until_more_steps(3)
    assert job.end() == 0, job.stderr
    undisturbed.check(job)


def test_what_workers_write_on_hosts_without_a_shared_disk_comes_back_at_the_end(
    apart: HostBed, job: ElasticJob, tmp_path: Path
) -> None:
    seen = apart.disk_of("h0")
    (seen / "code").mkdir()
    (seen / "code" / "make.sh").write_text('echo "$2" > "$1/made.$EDT_WORKER"; cp make.sh "$1/common"\n')
    job.out = tmp_path / "disk" / "out"
    inside = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path / "disk" / "code")]
    words = ("make.sh", job.out / "model", "a b")
    job.start(Path("sh"), *words, options=("-H", "h1:1,h2:1"), prefix=apart.on("h0", inside))
    assert job.wait() == 0, job.stderr
    names = ("common", "made.0", "made.1")
    assert sorted(path.name for path in (seen / "out" / "model").iterdir() if path.is_file()) == [*names]
    assert [(seen / "out" / "model" / name).read_text() for name in names[1:]] == ["a b\n"] * 2


class ServiceOnHosts:
    """A service, at first on the first host, and a job of its pool; `seen` is its `disk` from outside."""

    def __init__(self, bed: HostBed, folder: Path, disk: Path, seen: Path) -> None:
        self._bed = bed
        self.host = "h0"
        self.disk, self.seen = disk, seen
        self.home, self.code, self.results = self.seen / "home", self.seen / "code", folder / "results"
        for made in (self.code, self.results):
            made.mkdir()
        shutil.copy(TRACED, self.code)

    def list_hosts(self, *lines: str) -> None:
        beside = self.code / "hosts.new"
        beside.write_text("".join(f"{line}\n" for line in lines))
        beside.rename(self.code / "hosts")

    def edt(self, *words: object) -> str:
        return run(*self._bed.on(self.host, [str(BIN / "edt"), *map(str, words)]))

    def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            assert self._process.poll() is None
            time.sleep(10 * POLL)

    @contextlib.contextmanager
    def serving(self, log: Path) -> Iterator[None]:
        words = (BIN / "edt", "serve", "--hostfile", self.disk / "code" / "hosts")
        with log.open("wb") as said:
            command = self._bed.on(self.host, [*map(str, words)])
            self._process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            self.until(self._is_serving)
            yield
        finally:
            self._process.terminate()
            self._process.wait()

    def _is_serving(self) -> bool:
        try:
            return bool(json.loads((self.home / "server.json").read_text())["pid"] == self._process.pid)
        except FileNotFoundError:
            return False

    def submit(self, most: int, *options: object) -> ElasticJob:
        command = ("python", TRACED.name, self.results, *SLOW)
        words = ("submit", "--code", self.disk / "code", "--min", 1, "--max", most, *options, *command)
        self.id = self.edt(*words).split()[-1]
        one = ElasticJob(self.results.parent / "seen")
        one.out = self.home / "jobs" / self.id
        return one

    def until_succeeded(self) -> None:
        (self.results / "hurry").touch()
        self.until(lambda: "succeeded" in self.edt("show", self.id))


@pytest.fixture
def service(apart: HostBed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceOnHosts:
    monkeypatch.setenv("EDT_HOME", str(tmp_path / "disk" / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "disk"))
    return ServiceOnHosts(apart, tmp_path, tmp_path / "disk", apart.disk_of("h0"))


@pytest.mark.full
def test_a_service_on_another_host_goes_on_with_the_jobs_when_its_host_is_lost(
    bed: HostBed, undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setenv("EDT_HOME", str(shared / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(shared))
    shared.mkdir()
    service = ServiceOnHosts(bed, tmp_path, shared, shared)
    service.list_hosts("h1 slots=1", "h2 slots=1")
    with service.serving(tmp_path / "log"):
        job = service.submit(2, "--checkpoint-interval", 0)
        service.until(lambda: job.size() == 2 and len(job.events("checkpointed")) >= 2)
        bed.power_off(service.host)
    service.host = "h3"
    with service.serving(tmp_path / "log"):
        service.until(lambda: job.events("restored") and job.size() == 2)
        service.until_succeeded()
    undisturbed.check_final(service.results)


@pytest.mark.full
def test_a_service_counts_a_host_that_it_does_not_reach_as_down_and_uses_it_when_it_is_back(
    apart: HostBed, service: ServiceOnHosts, tmp_path: Path
) -> None:
    service.list_hosts("h1 slots=1", "h2 slots=1")
    with service.serving(tmp_path / "log"):
        job = service.submit(2)
        service.until(lambda: job.size() == 2)
        apart.unplug("h2")
        service.until(lambda: job.size() == 1)
        service.until(lambda: "h2 is down since" in service.edt("why", service.id))
        assert "it cannot be reached: nothing has come from h2 for 3 s" in service.edt("hosts")
        apart.plug("h2")
        service.until(lambda: job.size() == 2)
        assert " down" not in service.edt("hosts")
        service.edt("drain", "h2")
        service.until(lambda: job.size() == 1)
        service.until_succeeded()


@pytest.mark.full
def test_a_service_reaches_each_host_as_its_line_says_and_uses_one_when_its_line_is_mended(
    service: ServiceOnHosts, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "edt"  # shared by all hosts
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nhostname >> {tmp_path}/agents\nexec {BIN / "edt"} "$@"\n')
    other.chmod(0o755)
    hosts = ("h0 devices=0 transport=child", f"h1 devices=0 agent={other}")
    service.list_hosts(*hosts, "h2 devices=0 transport=ssh agent=/no/such/edt")
    with service.serving(tmp_path / "log"):
        job = service.submit(3)
        service.until(lambda: job.size() == 2)
        (lacking,) = job.events("host_unreachable")
        assert lacking["host"] == "h2"
        assert "is missing on h2, and there is no edt in PATH" in lacking["reason"]
        service.list_hosts(*hosts, f"h2 devices=0 agent={other}")
        service.until(lambda: job.size() == 3)
        service.until_succeeded()
    assert {*(tmp_path / "agents").read_text().split()} == {"h1", "h2"}
