from pathlib import Path

import pytest

from edt_launch.cluster.host_file import HostFile, parse
from edt_launch.cluster.sources import DevicesError, HostDevices


def test_slots_are_numbered_and_devices_named() -> None:
    text = "# ours\nnode1 slots=2\nnode2:1  # spare\n\nnode3 devices=GPU-a,5\nnode4\n"
    assert parse(text, "f") == (
        HostDevices("node1", ("0", "1")),
        HostDevices("node2", ("0",)),
        HostDevices("node3", ("GPU-a", "5")),
        HostDevices("node4", ("0",)),
    )


@pytest.mark.parametrize(
    "text, named",
    [
        ("", "at least one line"),
        ("node1 slots=0", "line 1"),
        ("a\nb c d", "line 2"),
        ("a\na", "each host once"),
        ("a devices=0,0", "each once"),
        ("a devices=", "names of devices"),
        ("a devices=0;rm", "names of devices"),
        ("$(x) devices=0", "line 1"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, named: str) -> None:
    with pytest.raises(DevicesError, match=named):
        parse(text, "f")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("a slots=1\n")
    source = HostFile(path)
    assert len(source.hosts()[0].devices) == 1
    path.write_text("a slots=22\n")
    assert len(source.hosts()[0].devices) == 22
    path.unlink()
    with pytest.raises(DevicesError, match="No such file"):
        source.hosts()
