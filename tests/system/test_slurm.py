"""Jobs in a real Slurm cluster, without ssh."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import BIN, SLOW, TRACED, ElasticJob, Undisturbed
from slurm_cluster import SlurmCluster, missing

RECIPE = Path(__file__).parents[2] / "launch" / "deploy" / "slurm" / "train.sbatch"

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=f"no Slurm: {missing()}")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, _light_processes: None) -> Iterator[SlurmCluster]:
    with SlurmCluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


class SlurmedJob(ElasticJob):
    """traced.py, started by the recipe."""

    def __init__(self, folder: Path, cluster: SlurmCluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.id = ""

    def submit(self, nodes: int) -> None:
        arguments = [str(self.results), "--delay", "0.2"]
        lines = [
            "import runpy, sys",
            f"sys.argv[1:] = {arguments}",
            f"runpy.run_path({str(TRACED)!r}, {{}}, '__main__')",
        ]
        (self.folder / "train.py").write_text("\n".join(lines) + "\n")
        environment = self.cluster.environment | {"PATH": f"{BIN}:{self.cluster.environment['PATH']}"}
        with (self.folder / "stdout").open("wb") as stdout, (self.folder / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                ["sbatch", "--wait", f"--nodes={nodes}", "--gpus-per-node=0", "--output=output", str(RECIPE)],
                cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            )  # fmt: skip
        self.until(lambda: self.stdout)
        self.id = self.stdout.split()[-1]
        self.out = self.folder / "runs" / self.id

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()


@pytest.fixture
def slurmed(tmp_path: Path, cluster: SlurmCluster) -> Iterator[SlurmedJob]:
    one = SlurmedJob(tmp_path / "job", cluster)
    yield one
    if (path := one.folder / "output").exists():
        print(path.read_text()[-5000:])
    one.kill()


def test_a_job_goes_on_when_a_node_is_taken_away(slurmed: SlurmedJob, undisturbed: Undisturbed) -> None:
    slurmed.submit(nodes=2)
    slurmed.until_size(2)
    slurmed.until_more_steps(2)
    slurmed.cluster.run("scontrol", "update", f"JobId={slurmed.id}", "NumNodes=1")
    slurmed.until_size(1)
    slurmed.until(lambda: len(slurmed.events("allocation_accepted")) == 2)
    assert slurmed.end() == 0
    undisturbed.check(slurmed, repeated=1)
    assert slurmed.survivors() == []


@pytest.mark.full
@pytest.mark.parametrize("cause", ["preemption", "time limit"])
def test_a_job_that_has_to_leave_is_requeued_and_repeats_nothing(
    slurmed: SlurmedJob, undisturbed: Undisturbed, cause: str, tmp_path: Path
) -> None:
    slurmed.submit(nodes=2)
    slurmed.until_size(2)
    slurmed.until_more_steps(2)
    if cause == "preemption":
        other = tmp_path / "urgent.sh"
        other.write_text("#!/bin/sh\nsleep 1\n")
        slurmed.cluster.run("sbatch", "--nodes=3", "--partition=high", "--output=/dev/null", other)
    else:
        slurmed.cluster.run("scancel", f"--signal={signal.SIGUSR2.name[3:]}", slurmed.id)
    slurmed.until(lambda: len(slurmed.events("begun")) == 2)
    slurmed.until(lambda: slurmed.worlds_since_start() == [2])
    assert slurmed.end() == 0
    assert f"the state is saved, and Slurm job {slurmed.id} is requeued" in slurmed.output
    undisturbed.check(slurmed)
    assert slurmed.survivors() == []


@pytest.mark.full
def test_a_job_goes_on_when_a_node_is_lost(slurmed: SlurmedJob, undisturbed: Undisturbed) -> None:
    slurmed.submit(nodes=3)
    slurmed.until_size(3)
    slurmed.until_more_steps(2)
    slurmed.cluster.lose_node(slurmed.cluster.nodes[-1])
    slurmed.until_size(2)
    assert slurmed.end() == 0
    slurmed.cluster.start_node(slurmed.cluster.nodes[-1])
    undisturbed.check(slurmed, repeated=1)
    assert slurmed.survivors() == []


@pytest.mark.full
def test_ranks_of_srun_are_the_hosts_of_a_job(
    job: ElasticJob, cluster: SlurmCluster, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    one, other = cluster.nodes[:2]
    job.allocate(1, one)
    srun = ("srun", "--nodes=2", "--ntasks-per-node=1", f"--nodelist={one},{other}")
    job.start(TRACED, job.results, *SLOW, options=("--under-mpi",), prefix=srun)
    job.until_size(1)
    job.until_more_steps(2)
    job.write_allocation(f"# edt allocation v1 generation=2\n{one}:1\n{other}:1\n")
    job.until_size(2)
    job.until_more_steps(2)
    assert job.end() == 0, job.stderr
    undisturbed.check(job)
    assert job.survivors() == []


@pytest.mark.full
def test_pilots_come_for_a_job_and_one_that_is_cancelled_is_replaced(
    job: ElasticJob, cluster: SlurmCluster, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    job.start(TRACED, job.results, *SLOW, options=("--slurm-pilots", "0:2"))
    job.until_size(2)
    job.until_more_steps(2)
    first, *_ = cluster.run("squeue", "--noheader", "--format=%i").split()
    cluster.run("scancel", first)
    job.until_size(1)
    job.until_size(2)
    assert job.end() == 0
    undisturbed.check(job, repeated=1)
    cluster.until(lambda: not cluster.run("squeue", "--noheader").strip())
    assert job.survivors() == []
