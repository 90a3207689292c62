"""Which rank of mpirun or srun a process is."""

import pytest

from edt_launch.cluster.ranks import Rank, rank_of, without_starter
from edt_launch.core.errors import UsageError

MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "3",
    "PMIX_NAMESPACE": "prterun-h0-123@1",
}
SRUN = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURMD_NODENAME": "n2",
}


def test_mpirun_counts_inside_an_allocation_of_slurm() -> None:
    assert rank_of(MPIRUN, "h1") == Rank(1, 3, "prterun-h0-123_1", "h1")
    assert rank_of(SRUN, "h1") == Rank(2, 4, "7-0-0", "n2")
    assert rank_of({**SRUN, "SLURM_RESTART_COUNT": "1"}, "h1").start == "7-0-1"
    assert rank_of({**MPIRUN, **SRUN}, "h1") == Rank(1, 3, "prterun-h0-123_1", "n2")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {name: value for name, value in MPIRUN.items() if name != "PMIX_NAMESPACE"},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"},  # the batch script itself
        {**MPIRUN, "OMPI_COMM_WORLD_RANK": "one"},
    ],
)
def test_what_is_no_rank_is_told_how_to_be_one(variables: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--map-by ppr:1:node, or with srun --ntasks-per-node=1"):
        rank_of(variables)


def test_workers_do_not_take_themselves_for_the_rank() -> None:
    left = without_starter({**MPIRUN, **SRUN, "PMI_RANK": "1", "PRTE_LAUNCHED": "1", "PATH": "/bin"})
    assert left == {**SRUN, "PATH": "/bin"}
