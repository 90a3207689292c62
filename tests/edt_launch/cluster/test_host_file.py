"""Hosts by their names."""

from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.host_file import HostFile, HostList, parse
from edt_launch.core.errors import HostsError, SourceError


def test_hosts_of_an_option() -> None:
    assert HostList("h1:4, h-2.lan:2,10.0.0.3,ann@h4:2").hosts() == (
        HostSlots("h1", 4),
        HostSlots("h-2.lan", 2),
        HostSlots("10.0.0.3", 1),
        HostSlots("ann@h4", 2),
    )


@pytest.mark.parametrize("text", ["fd00::1", "fd00::1:2", "[fd00::1]:2", "::1"])
def test_an_ipv6_address_is_refused_as_such(text: str) -> None:
    with pytest.raises(HostsError, match=r"-H.*a name or an IPv4 address"):
        HostList(f"h1:1,{text}").hosts()
    for line in (text, f"{text} slots=1"):
        with pytest.raises(HostsError, match=r"line 2.*a name or an IPv4 address"):
            parse(f"h1\n{line}\n", "f")


def test_lines_of_a_file() -> None:
    text = "# ours\nnode1 slots=2 max_slots=4\r\nnode2:1  # spare\n\nnode3 devices=GPU-a,5\nnode4\n"
    text += "node5 slots=1 transport=ray\nnode6 devices=0 agent=/opt/edt/bin/edt transport=ssh\n"
    text += "node7 slots=2 devices=none agent=/opt/edt/bin/edt\nnode8 devices=none\n"
    assert parse(text, "f") == (
        HostSlots("node1", 2),
        HostSlots("node2", 1),
        HostSlots("node3", 2, ("GPU-a", "5")),
        HostSlots("node4", 1),
        HostSlots("node5", 1, None, "ray"),
        HostSlots("node6", 1, ("0",), "ssh", "/opt/edt/bin/edt"),
        HostSlots("node7", 2, ("cpu0", "cpu1"), "", "/opt/edt/bin/edt"),
        HostSlots("node8", 1, ("cpu0",)),
    )


@pytest.mark.parametrize(
    "text, named",
    [
        ("", "f: '': expected at least one line"),
        ("a\nb c d", "line 2"),
        ("a\n\na", "line 3: 'a': expected each host once"),
        ("a devices=0;rm", "names of devices"),
        ("a devices=0 transport=;rm", "the name of a transport"),
        ("a devices=0 agent=edt", "line 1: 'edt': expected the path of the host's edt"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, named: str) -> None:
    with pytest.raises(HostsError) as raised:
        parse(text, "f")
    assert named in str(raised.value)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "my 'hosts'"
    path.write_text("a slots=1\n")
    source = HostFile(path)
    assert source.hosts() == (HostSlots("a", 1),)
    path.write_text("a slots=22\n")
    assert source.hosts() == (HostSlots("a", 22),)
    path.write_text("a slots=2")
    with pytest.raises(SourceError, match=r"--hostfile .*half written"):
        source.hosts()
    path.unlink()
    with pytest.raises(SourceError, match=r"--hostfile .*: No such file"):
        source.hosts()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_may_come_from_windows(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "hosts").write_bytes("node1 slots=2\r\nnode2\r\n".encode(encoding))
    assert HostFile(tmp_path / "hosts").hosts() == (HostSlots("node1", 2), HostSlots("node2", 1))
