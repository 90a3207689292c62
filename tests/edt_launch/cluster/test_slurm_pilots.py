"""One-node jobs of Slurm that come and go with what jobs could use."""

import pytest

from edt_launch.cluster import slurm_pilots

SHOWN = """\
11   RUNNING    N/A                  64  gres:gpu:4        n1
12   RUNNING    2026-11-28T12:00:38  64  gres/gpu:a100=4   n2
13   PENDING    N/A                  1   gres:gpu:a100:4
14   COMPLETING N/A                  64  gres:gpu:4        n3
15   CANCELLED  N/A                  64  gres:gpu:4        n4
16   RUNNING    N/A                  8   N/A               n5
"""


def test_what_squeue_shows() -> None:
    pilots = slurm_pilots.parse(SHOWN)
    assert [(pilot.job, pilot.node, pilot.slots, pilot.is_leaving) for pilot in pilots] == [
        ("11", "n1", 4, False),
        ("12", "n2", 4, True),  # it has to make room
        ("13", "", 4, False),
        ("14", "", 4, True),
        ("16", "n5", 8, False),
    ]
    assert pilots[0].host.devices == ("0", "1", "2", "3")
    assert pilots[4].host.devices is not None
    assert pilots[4].host.devices[0] == "cpu0"


def pilot(job: int, node: str = "", *, is_leaving: bool = False) -> slurm_pilots.Pilot:
    return slurm_pilots.Pilot(str(job), node, 4, 64, is_leaving)


NOW = 1000.0
LONG_AGO = {str(job): NOW - slurm_pilots.IDLE_LIMIT for job in range(10)}
RECENTLY = {str(job): NOW - slurm_pilots.SETTLE_TIME / 2 for job in range(10)}


@pytest.mark.parametrize(
    "pilots, demand, used, since, least, most, expected",
    [
        ([], 0, (), {}, 2, 4, slurm_pilots.Decision(submit=2)),
        ([pilot(1)], 9, (), {}, 0, 8, slurm_pilots.Decision(submit=2)),
        ([pilot(1), pilot(2), pilot(3)], 4, (), {}, 0, 8, slurm_pilots.Decision(cancel=("2", "3"))),
        ([pilot(1, "a"), pilot(2)], 99, "a", LONG_AGO, 0, 3, slurm_pilots.Decision(submit=1)),
        ([pilot(1, "a", is_leaving=True)], 4, "a", {}, 0, 1, slurm_pilots.Decision()),  # it still counts
        ([pilot(1, "a")], 4, (), RECENTLY, 0, 8, slurm_pilots.Decision()),  # jobs have not taken it yet
        ([pilot(1, "a")], 4, "a", RECENTLY, 0, 8, slurm_pilots.Decision(submit=1)),
        ([pilot(1, "a"), pilot(2, "b")], 0, "b", LONG_AGO, 0, 8, slurm_pilots.Decision(cancel=("1",))),
        ([pilot(1, "a"), pilot(2, "b")], 0, (), LONG_AGO, 1, 8, slurm_pilots.Decision(cancel=("1",))),
    ],
)
def test_pilots_follow_the_demand(
    pilots: list[slurm_pilots.Pilot],
    demand: int,
    used: str,
    since: dict[str, float],
    least: int,
    most: int,
    expected: slurm_pilots.Decision,
) -> None:
    assert slurm_pilots.decide(NOW, pilots, demand, used, since, least, most) == expected


class Commands:
    """Stands for Slurm's commands."""

    def __init__(self) -> None:
        self.shown = ""
        self.given: list[tuple[str, ...]] = []

    def __call__(self, *words: str) -> str:
        if words[0] != "squeue":
            self.given.append(words)
        return self.shown if words[0] == "squeue" else "7\n"


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_source_submits_shows_and_cancels(is_kept: bool) -> None:
    slurm, now = Commands(), [0.0]
    source = slurm_pilots.SlurmPilots(
        "x", 0, 4, ["--partition=low"], is_kept=is_kept, run=slurm, clock=lambda: now[0]
    )
    assert source.hosts() == ()
    source.demand(1)
    now[0] = 5.0
    source.hosts()
    ((*submitted,),) = slurm.given
    assert submitted[0] == "sbatch"
    assert {"--partition=low", "--exclusive", "--job-name=edt-pilot-x"} <= set(submitted)
    assert source.waiting() == ""
    slurm.shown = "7 PENDING N/A 8 gres:gpu:2\n8 PENDING N/A 8 gres:gpu:2\n9 COMPLETING N/A 8 gres:gpu:2\n"
    now[0] = 8.0
    source.demand(4)
    source.hosts()
    assert source.waiting() == "waiting for 2 more nodes, whose pilots are in Slurm's queue"
    source.demand(1)
    slurm.given.clear()
    slurm.shown = "7 RUNNING N/A 8 gres:gpu:2 n1\n"
    now[0] = 11.0
    (host,) = source.hosts()
    assert source.waiting() == ""
    assert (host.host, host.devices, host.transport) == ("n1", ("0", "1"), "slurm-pilot")
    source.demand(0)
    source.reserve("n1", ["0"])
    now[0] = 1000.0
    assert source.hosts() == (host,)
    source.release("n1", ["0"])
    now[0] += slurm_pilots.IDLE_LIMIT / 2
    source.hosts()
    assert slurm.given == []
    now[0] += slurm_pilots.IDLE_LIMIT / 2
    source.hosts()
    assert slurm.given == [("scancel", "7")]
    source.close()
    assert slurm.given[-1] == ("scancel", "--name=edt-pilot-x", *["--state=PENDING"] * is_kept)
