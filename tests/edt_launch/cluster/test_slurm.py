import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions
from edt_launch.cluster.slurm import Slurm, counts_of, hosts_of
from edt_launch.core.errors import HostsError


def hosts(**variables: str) -> tuple[HostSlots, ...] | None:
    named = {f"SLURM_{name}": value for name, value in variables.items()}
    source = Slurm.detect(HostOptions(named))
    return None if source is None else source.hosts()


def test_without_gpus_tasks_are_slots() -> None:
    found = hosts(JOB_ID="1", JOB_NODELIST="n[1-3]", TASKS_PER_NODE="2(x2),1")
    assert found is not None
    assert [host.slots for host in found] == [2, 2, 1]


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


@pytest.mark.parametrize("text", ["", "x", "2(x3", "1,1"])
def test_what_is_no_list_of_numbers_is_named(text: str) -> None:
    with pytest.raises(HostsError, match="SLURM_TASKS_PER_NODE"):
        counts_of(text, 3)
