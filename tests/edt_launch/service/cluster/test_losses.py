"""Which hosts count as lost."""

from pathlib import Path

import pytest

from edt_launch.service.cluster.losses import INTERVAL, Losses, SshCheck

REPORT = {"h2": "nothing has come from h2 for 3 s"}


class FakeCheck:
    """A look whose answer the test gives."""

    def __init__(self) -> None:
        self.answer: str | None = None

    def problem(self) -> str | None:
        return self.answer


class Looking:
    """Losses, and the looks that they have begun."""

    def __init__(self) -> None:
        self.checks: list[tuple[str, FakeCheck]] = []
        self.losses = Losses(self._start)
        self.now = 0.0

    def _start(self, host: str) -> FakeCheck:
        self.checks.append((host, FakeCheck()))
        return self.checks[-1][1]

    def after(
        self, seconds: float, answer: str | None, reports: dict[str, str], listed: str = "h1 h2"
    ) -> dict:
        """What is lost, if the last look has this answer by then."""
        self.now += seconds
        if self.checks:
            self.checks[-1][1].answer = answer
        return dict(self.losses.look(self.now, listed.split(), reports))


def test_a_host_is_lost_if_a_job_says_so_and_it_does_not_answer_until_it_does() -> None:
    one = Looking()
    assert one.after(0, None, {}) == {}
    assert one.checks == []
    assert one.after(1, None, REPORT) == {}
    lost = {"h2": "it cannot be reached: nothing has come from h2 for 3 s"}
    assert one.after(1, "no route", REPORT) == lost
    assert one.after(1, None, {}) == lost  # its jobs have left it
    assert one.after(INTERVAL, None, {}) == lost
    assert one.after(1, "", {}) == {}
    assert [host for host, _ in one.checks] == ["h2", "h2"]
    assert one.losses._watched == {}


def test_a_host_that_answers_is_not_lost_whatever_a_job_says_and_is_looked_at_again() -> None:
    one = Looking()
    one.after(0, None, REPORT)
    assert one.after(1, "", REPORT) == {}
    one.after(INTERVAL, None, REPORT)
    assert len(one.checks) == 2
    assert one.after(1, "no route", REPORT) != {}


def test_only_hosts_of_the_source_are_looked_at() -> None:
    one = Looking()
    assert one.after(0, None, {"evil.example": "x"}) == {}
    assert one.checks == []
    one.after(0, None, REPORT)
    one.after(1, "no route", REPORT)
    assert one.after(1, None, REPORT, listed="h1") == {}
    assert one.losses._watched == {}


@pytest.mark.parametrize(
    "body, problem",
    [
        ("exit 0", ""),
        ("echo 'ssh: connect to host h2: No route to host' >&2; exit 255", "No route to host"),
        ("echo 'ann@h2: Permission denied (publickey).' >&2; exit 255", ""),
        ("exit 127", ""),
    ],
)
def test_a_host_answers_if_ssh_gets_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, problem: str
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n{body}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    check = SshCheck("h2")
    check._process.wait(30)
    found = check.problem()
    assert found is not None
    assert found.endswith(problem) if problem else found == ""
