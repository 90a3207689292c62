"""How ranks find rank 0, and what rank 0 makes of them."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from edt_launch.agent.network.invitation import Invitation
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.ranks import LateRanks, Rank
from edt_launch.core.errors import ExitCode, StartError
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.under_mpi import (
    Ranks,
    elected,
    invitation_file,
    invited,
    outcome_of,
    read_invitation,
    serve,
)

RANK = Rank(1, 2, "start", "h1")
INVITATION = Invitation(["127.0.0.1"], 1, "f", "t")


def test_the_invitation_is_there_for_this_user_while_ranks_come(tmp_path: Path) -> None:
    options = RunOptions(output_dir=tmp_path / "out")
    file = invitation_file(RANK, options)
    with invited(file, INVITATION):
        assert file.stat().st_mode & 0o077 == 0
        assert read_invitation(invitation_file(replace(RANK, number=0), options), 60, []) == INVITATION
    with pytest.raises(StartError, match=r"rank 0 has left no invitation in .* --output-dir"):
        read_invitation(file, 0.1, [])
    assert read_invitation(file, 60, [signal.SIGTERM]) is None


@pytest.mark.parametrize(
    "number, under_mpi, code",
    [
        (signal.SIGTERM, False, ExitCode.TERMINATED),
        (signal.SIGUSR1, False, ExitCode.LEFT),
        (signal.SIGUSR2, False, ExitCode.LEFT),
        (signal.SIGTERM, True, ExitCode.NOT_STARTED),
    ],
)
def test_a_signal_before_rank_0_is_reached(
    tmp_path: Path, number: int, under_mpi: bool, code: ExitCode
) -> None:
    options = RunOptions(output_dir=tmp_path, under_mpi=under_mpi)
    end = serve(RANK, options, HostSlots("h1", 1), {}, [number])
    assert outcome_of(RANK, end, options).exit_code == code


@pytest.mark.parametrize("kind", ["open to others", "a link", "somebody else's"])
def test_nobody_else_can_invite(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "invitation"
    other = tmp_path / "other"
    other.write_text(INVITATION.text)
    other.chmod(0o600)
    if kind == "a link":
        file.symlink_to(other)
    else:
        other.rename(file)
        if kind == "open to others":
            file.chmod(0o620)
        elif os.geteuid() == 0:
            os.chown(file, 12345, -1)
        else:
            pytest.skip("only root can give a file away")
    with pytest.raises((StartError, OSError)):
        read_invitation(file, 60, [])


class FakeRanks(Ranks):
    """Ranks of which the test says who has come, and who is connected."""

    def __init__(self) -> None:
        super().__init__(HostSlots("h0", 1))
        self.coming: list[str] = []
        self.hosts: set[str] = set()

    def arrival(self, timeout: float) -> HostSlots | None:
        return HostSlots(self.coming.pop(0), 1) if self.coming else None

    def connected(self) -> set[str]:
        return self.hosts

    def number(self, host: str) -> int:
        return {"h1": 2, "h2": 1}.get(host, 2)


def test_late_ranks_come_and_go() -> None:
    ranks = FakeRanks()
    try:
        ranks.coming = ["h2", "h1", "h3"]
        assert [host.host for host in ranks.gather(1, 60, [], LateRanks(3, 60))] == ["h0", "h2", "h1"]
        for ranks.hosts, shown in (
            ({"h1", "h2"}, "h0 h2 h1"),
            ({"h1"}, "h0 h2 h1"),
            ({"h1"}, "h0 h1"),
            ({"h1", "h3"}, "h0 h1 h3"),
        ):
            assert [host.host for host in ranks.present()] == shown.split()
    finally:
        ranks.dismiss(0)


def test_the_first_of_a_machine_is_rank_0(tmp_path: Path) -> None:
    rank, options = replace(RANK, number=0, is_elected=True), RunOptions(output_dir=tmp_path / "out")
    with elected(rank, options) as first:
        assert first == rank
        with elected(rank, options) as second:
            assert second == replace(rank, number=1, host=f"h1-{os.getpid()}")
    with elected(rank, options) as third:
        assert third == rank
    assert not any((tmp_path / "out").iterdir())
