from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.slurm import Slurm, hosts_of
from edt_launch.core.errors import HostsError


def hosts(**variables: str) -> tuple[HostSlots, ...] | None:
    named = {f"SLURM_{name}": value for name, value in variables.items()}
    source = Slurm.detect(HostOptions(named))
    return None if source is None else source.hosts()


def test_without_gpus_tasks_are_slots() -> None:
    found = hosts(JOB_ID="1", JOB_NODELIST="n[1-3]", TASKS_PER_NODE="2(x2),1")
    assert found is not None
    assert [host.slots for host in found] == [2, 2, 1]


DETAILS = """JobId=7 JobName=x
   NodeList=n[1-3],c
     Nodes=n[1-2] CPU_IDs=0-7 Mem=0 GRES=gpu:a100:2(IDX:0,3),gpu:v100:1(IDX:5),shard:9(IDX:0)
     Nodes=n3 CPU_IDs=0-7 Mem=0 GRES=gpu:4(IDX:0-3)
     Nodes=c CPU_IDs=0-7 Mem=0 GRES=
"""


@pytest.mark.parametrize(
    "variables, counts",
    [
        ({"GPUS_PER_NODE": "a100:2,v100:1"}, [3, 3, 3, 3]),
        ({"GPUS_PER_TASK": "2", "TASKS_PER_NODE": "1(x3),2"}, [2, 2, 2, 4]),
        ({}, [3, 3, 4]),
    ],
)
def test_each_node_has_its_own_number_of_gpus(
    variables: dict[str, str], counts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\n[ $4 = 7 ] && cat <<E\n{DETAILS}E\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = hosts(JOB_ID="7", JOB_NODELIST="n[1-3],c", GPUS_ON_NODE="3", JOB_GPUS="0,3,5", **variables)
    assert found is not None
    assert [host.slots for host in found] == counts
    assert [host.devices for host in found] == [tuple(map(str, range(count))) for count in counts]


def test_gpus_of_other_nodes_that_slurm_does_not_tell_are_not_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HostsError, match="ask Slurm for --gpus-per-node, or name hosts with -H"):
        hosts(JOB_ID="7", JOB_NODELIST="n[1-2]", GPUS_ON_NODE="3")


@pytest.mark.parametrize(
    "text, names",
    [
        ("login", ["login"]),
        ("a,b", ["a", "b"]),
        ("n[01-03,7],x", ["n01", "n02", "n03", "n7", "x"]),
        ("a[1-2]-ib", ["a1-ib", "a2-ib"]),
        ("n[1-2]-x[01-02],m", ["n1-x01", "n1-x02", "n2-x01", "n2-x02", "m"]),
    ],
)
def test_lists_of_nodes(text: str, names: list[str]) -> None:
    assert list(hosts_of(text)) == names


@pytest.mark.parametrize(
    "text", ["n[", "n[a-b]", "n[3-1]", "n[0-9999999]", "n[0-999]x[0-999]", "[", ",", "n]", "n[1]]", "n,"]
)
def test_what_is_no_list_of_nodes_is_named(text: str) -> None:
    with pytest.raises(HostsError, match="SLURM_JOB_NODELIST"):
        hosts_of(text)
