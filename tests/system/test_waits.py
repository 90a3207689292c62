"""Who waits for whom, and what ends the wait: the rows of docs/explanation/waits.md, each with its tests.

The peers of the tests below are real processes.
"""

import queue
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world.control import Launcher
from edt_hvd.world.horovodrun.horovod_driver import HorovodDriver
from edt_launch.launcher.control import ControlServer
from edt_messages import messages
from started import started

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "explanation" / "waits.md"

ROWS = """\
enough slots
    edt_launch/launcher/runs/test_job::waits_for_a_first_allocation
a host-discovery script
    edt_launch/cluster/test_discovery_script::a_script_that_fails_hangs_or_floods
`scontrol`
    edt_launch/cluster/test_slurm_job::a_command_of_slurm_that_does_not_answer_is_not_waited_for
a name server
    edt_launch/cluster/test_network::a_host_that_was_not_found_is_looked_up_again_later_or_at_once_if_asked_to
the hello of a worker
    edt_launch/launcher/test_control::strangers_hold_no_place_and_do_not_stay
messages
    system/test_waits::both_ends_of_a_workers_connection_notice_a_silent_host
room
    system/test_waits::both_ends_of_a_workers_connection_notice_a_silent_host
its hello
    edt_launch/launcher/hosts/test_agents::an_agent_that_is_silent_is_given_up
its reports
    edt_launch/launcher/hosts/test_agents::a_host_that_is_silent_is_lost
    edt_launch/launcher/hosts/test_agents::an_agent_that_is_killed_is_lost_and_the_next_worker_starts_another
whether they reach each other
    edt_launch/agent/network/test_probing::a_host_that_does_not_accept_a_connection_is_not_waited_for
    edt_launch/launcher/hosts/test_reachability::hosts_are_in_doubt_when_their_workers_wait_for_others
the end of a worker
    edt_launch/launcher/driver/test_driver::an_agent_that_does_not_answer_is_not_waited_for
the agent's end
    edt_launch/launcher/hosts/test_agents::an_agent_that_is_silent_is_given_up
the rendezvous
    edt_launch/membership/test_lateness::one_that_takes_far_too_long_is_ended_and_its_slot_tried_again
their end
    edt_launch/membership/test_step::a_worker_that_does_not_leave_is_ended
    edt_launch/membership/test_shortage::the_farthest_of_too_few_survivors_saves_the_state
their end after a request
    edt_launch/launcher/driver/test_driver::a_worker_that_was_told_to_end_is_killed_after_a_while
its workers' next heartbeat
    edt_launch/launcher/test_watchdog::who_falls_silent_hangs
more slots
    edt_launch/membership/test_shortage::too_few_survivors_wait_for_a_limited_time
its processes
    edt_launch/launcher/test_termination::a_signal_asks_once_and_kills_once_after_the_grace
ranks whose agents have ended
    edt_launch/launcher/transports/test_dial_back::an_agent_that_does_not_come_again_is_not_waited_for_without_limit
the rest of it
    edt_launch/launcher/runs/test_control_socket::the_rest_of_a_request_is_not_waited_for
    edt_launch/launcher/runs/test_control_socket::who_comes_last_is_served_however_many_there_are
your terminal
    edt_launch/agent/test_agent::an_agent_waits_for_its_launcher_to_deal_with_output
commands
    edt_launch/agent/test_agent::workers_end_with_their_launcher_and_with_their_agent
    edt_launch/launcher/transports/test_dial_back::a_launcher_that_is_gone_ends_the_workers
an answer of the warm server
    edt_launch/agent/test_lifecycle::a_server_that_does_not_answer_is_done_without
the exit code of a worker
    edt_launch/agent/test_lifecycle::how_it_ended_is_what_it_said_if_nobody_else_knows
other holders of a worker's output
    edt_launch/agent/test_lifecycle::who_keeps_its_output_open_delays_that_for_a_moment_only
processes that workers have left behind
    edt_launch/agent/test_agent::what_workers_have_left_behind_is_killed_and_counted
    edt_launch/agent/system/test_processes::what_begins_quicker_than_it_is_killed_is_left_after_a_while
the launcher, at the end
    edt_launch/agent/test_connection::at_its_end_an_agent_does_not_wait_for_a_launcher_that_reads_nothing
requests
    edt_hvd/warm/test_server::it_ends_without_workers_when_the_agent_has_gone_or_nobody_asks
the rest of a request
    edt_hvd/warm/test_server::the_rest_of_a_request_is_not_waited_for
the order to begin
    edt_hvd/warm/test_worker::a_worker_whose_agent_is_gone_never_begins
the launcher to accept it
    edt_hvd/world/test_control::a_launcher_that_does_not_accept_the_connection_is_not_waited_for
an assignment
    system/test_waits::a_worker_does_not_wait_for_who_is_gone_or_silent
    system/test_waits::both_ends_of_a_workers_connection_notice_a_silent_host
room
    system/test_waits::both_ends_of_a_workers_connection_notice_a_silent_host
its own orderly end
    edt_hvd/world/test_control::a_worker_without_a_launcher_ends_though_it_takes_no_sigterm
the other members
    system/test_torn_worlds::who_waits_for_others_that_go_wrong_gets_an_error_and_lives
    system/test_torn_worlds::who_forms_a_world_with_a_member_that_is_stopped_can_abort
the other members
    system/test_torn_worlds::who_waits_for_others_that_go_wrong_gets_an_error_and_lives
    system/test_torn_worlds::who_forms_a_world_with_a_member_that_is_stopped_can_abort
its end, while members wait in different collectives
    edt_launch/launcher/test_watchdog::workers_that_wait_in_different_collectives_wait_for_ever
    system/test_failures::workers_in_different_collectives_end_the_job
its end, with all other members in it
    edt_launch/launcher/test_watchdog::a_collective_that_all_are_in_ends_with_the_loss_of_one
an answer
    system/test_waits::a_worker_does_not_wait_for_who_is_gone_or_silent
the next assignment
    system/test_waits::a_worker_does_not_wait_for_who_is_gone_or_silent
the other members
    edt_hvd/world/horovodrun/test_horovod_world::a_member_that_does_not_come_is_given_up
"""
"""The beginning of what each row waits for, and below it the tests that fail without the limit."""


def test_each_row_has_tests() -> None:
    shown = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line[:2] == "| "]
    rows = [cells[:2] for cells in shown if cells[0] != "who waits"]
    assert len(rows) == len(re.findall(r"^\S", ROWS, re.MULTILINE))
    left = iter(rows)
    for line in ROWS.splitlines():
        if line.startswith(" "):
            file, _, name = line.strip().partition("::")
            assert f"\ndef test_{name}(" in (TESTS / f"{file}.py").read_text(), line
        else:
            assert any(cell.startswith(line) for cell in next(left)), line


PEER = """
import os, signal, socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    connection.recv(65536)
    if sys.argv[1].startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    time.sleep(600 if sys.argv[1] == "silent" else 0)
"""
"""Accepts one connection, reads once, and is closed, silent, killed or stopped."""


@pytest.fixture(autouse=True)
def outliving(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process does not end with its launcher, as workers do."""
    monkeypatch.setattr(Launcher, "_end_orphan", lambda _: None)


def of_launcher(address: str) -> None:
    launcher = Launcher(address, "token", 0)
    launcher.connect()
    try:
        launcher.wait_for_assignment(progress=0)
    finally:
        launcher.close()


def of_driver(address: str) -> None:
    HorovodDriver(address, timeout=0.2).get("scope", "key")


def assigned_by_driver(address: str) -> None:
    HorovodDriver(address, timeout=0.2).next_assignment("host", 0)


CASES = [
    *((of_launcher, how) for how in ("closed", "SIGKILL")),
    *((of_driver, how) for how in ("closed", "SIGKILL", "SIGSTOP", "silent")),
    (assigned_by_driver, "SIGSTOP"),
]


@pytest.mark.parametrize("ask, how", CASES)
def test_a_worker_does_not_wait_for_who_is_gone_or_silent(ask: Callable[[str], None], how: str) -> None:
    with started([sys.executable, "-c", PEER, how], stdout=subprocess.PIPE, text=True) as process:
        address = f"127.0.0.1:{process.stdout.readline().strip()}"
        with pytest.raises(CoordinatorLostError):
            ask(address)


def test_both_ends_of_a_workers_connection_notice_a_silent_host() -> None:
    heard: queue.Queue[messages.Message] = queue.Queue()
    server = ControlServer("127.0.0.1", "token", lambda _, message: heard.put(message))
    launcher = Launcher(server.address, "token", 0)
    launcher.connect()
    assert isinstance(heard.get(timeout=120), messages.Hello)
    for end in (launcher._socket, server._connections[0]):
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
    launcher.close()
    server.close()
