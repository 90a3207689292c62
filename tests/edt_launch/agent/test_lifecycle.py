"""What an agent does about its workers: the decisions, without processes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edt_launch.agent import protocol
from edt_launch.agent.lifecycle import (
    LEFTOVER_GRACE,
    REQUEST_TIMEOUT,
    STATUS_TIMEOUT,
    Closed,
    Do,
    Gone,
    Lease,
    LifelineEnded,
    OutputEnded,
    Refused,
    Running,
    State,
    Tick,
    Verb,
    deadline,
    lingering,
    silent,
    step,
)


def after(*events, can_fork=True):
    """The state after events, each a second after the one before, and what the last one has led to."""
    state, actions = State(can_fork), []
    for now, event in enumerate(events):
        state, actions = step(float(now), state, event)
    return state, actions


START, FORKED = protocol.Start(1, {"A": "b"}), Running(1, 40, is_forked=True)
OVER = [Do(Verb.FORGET, 1), protocol.Exited(1, 3)]


def test_a_worker_is_forked_and_begins_when_the_launcher_knows_of_it():
    assert after(START)[1] == [Do(Verb.FORK, 1)]
    assert after(START, FORKED)[1] == [protocol.Started(1, 40), Do(Verb.RELEASE, 1)]


@pytest.mark.parametrize("events, can_fork", [((START,), False), ((START, Refused(1)), True)])
def test_without_a_warm_server_it_is_executed(events, can_fork):
    assert after(*events, can_fork=can_fork)[1] == [Do(Verb.EXECUTE, 1)]
    assert after(*events, Running(1, 40), can_fork=can_fork)[1] == [protocol.Started(1, 40)]


def test_what_a_worker_has_started_may_end_by_itself_too_once_it_was_asked():
    asked = START, FORKED, protocol.Terminate(1), OutputEnded(1)
    assert after(*asked[:3])[1] == [Do(Verb.TERMINATE, 1)]
    assert after(*asked, protocol.Terminate(1, others=True))[1] == [Do(Verb.TERMINATE_OTHERS, 1)]
    state, actions = after(*asked, Gone(1, 3))
    assert actions == [Do(Verb.TERMINATE_OTHERS, 1)]
    assert lingering(state) == {1: 40}
    state, actions = step(deadline(state), state, Tick(frozenset({1})))
    assert actions == []
    assert step(deadline(state), state, Tick())[1] == [Do(Verb.CLOSE_LIFELINE, 1), *OVER]
    killed = [Do(Verb.KILL, 1), Do(Verb.CLOSE_LIFELINE, 1), *OVER]
    assert step(9.0, state, protocol.Kill(1))[1] == killed


def test_a_server_that_does_not_answer_is_done_without():
    state, _ = after(START)
    assert deadline(state) == REQUEST_TIMEOUT
    assert step(REQUEST_TIMEOUT - 0.1, state, Tick())[1] == []
    state, actions = step(REQUEST_TIMEOUT, state, Tick())
    assert actions == [Do(Verb.EXECUTE, 1, f"the warm server has not answered for {REQUEST_TIMEOUT:g} s")]
    assert step(REQUEST_TIMEOUT + 1, state, Running(1, 40))[1] == [protocol.Started(1, 40)]


@pytest.mark.parametrize("order", [(Gone(1, 3), OutputEnded(1)), (OutputEnded(1), Gone(1, 3))])
def test_its_end_is_told_after_everything_that_it_has_printed(order):
    _, actions = after(START, FORKED, *order)
    assert actions[-2:] == OVER
    assert after(START, FORKED, *order)[0].processes == {}


def test_who_keeps_its_output_open_delays_that_for_a_moment_only():
    state, actions = after(START, FORKED, Gone(1, 3))
    assert actions == [Do(Verb.CLOSE_LIFELINE, 1)]
    assert deadline(state) == 2 + LEFTOVER_GRACE
    assert step(2 + LEFTOVER_GRACE, state, Tick())[1] == OVER


@pytest.mark.parametrize("said, code", [(5, 5), (None, -9)])
def test_how_it_ended_is_what_it_said_if_nobody_else_knows(said, code):
    state, _ = after(START, FORKED, OutputEnded(1), LifelineEnded(1, said))
    assert silent(state) == {1: 40}
    assert deadline(state) == 3 + STATUS_TIMEOUT
    assert step(3 + STATUS_TIMEOUT, state, Tick())[1] == [
        Do(Verb.CLOSE_LIFELINE, 1),
        Do(Verb.FORGET, 1),
        protocol.Exited(1, code),
    ]


LEASED = State(can_fork=True, lease=Lease(15.0, renewed_at=0.0, heartbeat_at=0.0))


@pytest.mark.parametrize("event, has_begun", [(Gone(1, 127), False), (protocol.Kill(1), True)])
def test_a_worker_that_cannot_begin_is_told_from_one_that_has_failed(event, has_begun):
    state, _ = after(START, event, can_fork=False)
    assert step(9.0, state, OutputEnded(1))[1][-1].has_begun is has_begun


def test_a_lease_is_renewed_from_the_heartbeat_that_was_answered():
    state, actions = step(0.0, LEASED, Tick())
    assert actions == [protocol.Heartbeat(0.0)]
    assert deadline(state) == protocol.HEARTBEAT_INTERVAL
    state, actions = step(14.0, state, protocol.Renew(10.0))  # an answer that was under way for long
    assert actions == []
    state, _ = step(14.0, state, protocol.Renew(5.0))  # the answer to an earlier heartbeat takes nothing back
    state, actions = step(14.0, state, Tick())
    assert actions == [protocol.Heartbeat(14.0)]
    state, actions = step(24.9, state, START)
    assert actions == [Do(Verb.FORK, 1)]
    assert not state.is_closing


def test_when_its_lease_has_ended_all_workers_are_killed_whatever_else_comes():
    state, _ = step(0.0, LEASED, START)
    state, actions = step(15.0, state, protocol.Renew(14.0))  # it waited while the whole host stood still
    assert actions == [protocol.LeaseExpired(15.0), Do(Verb.KILL, 1), Do(Verb.CLOSE_LIFELINE, 1)]
    assert step(15.0, state, protocol.Start(2, {}))[1] == []


events = st.one_of(
    st.builds(protocol.Start, st.integers(0, 2), st.just({})),
    *(st.builds(kind, st.integers(0, 2)) for kind in (protocol.Kill, Refused, OutputEnded)),
    st.builds(Running, st.integers(0, 2), st.integers(1, 99), st.booleans()),
    st.builds(LifelineEnded, st.integers(0, 2), st.none() | st.integers(0, 255)),
    st.builds(Gone, st.integers(0, 2), st.integers(-64, 255)),
    st.builds(Tick, st.frozensets(st.integers(0, 2))),
    st.builds(protocol.Renew, st.floats(0, 200)),
    st.just(Closed()),
)


@example(True, False, [(0.0, START), (0.0, FORKED)])
@given(st.booleans(), st.booleans(), st.lists(st.tuples(st.floats(0, 200), events), max_size=30))
def test_whatever_happens_every_worker_ends_once_and_the_agent_ends(can_fork, is_leased, happened):
    state = State(can_fork, Lease(15.0, 0.0, 0.0) if is_leased else None)
    now, started, exits = 0.0, 0, 0
    rest = [(0.0, Closed()), *[(REQUEST_TIMEOUT, Tick())] * 2]  # nobody needs to tell of their ends
    for seconds, event in [*happened, *rest]:
        now += seconds
        has_lease = state.lease is None or now < state.lease.expires_at
        is_open = has_lease and not state.is_closing
        is_new = isinstance(event, protocol.Start) and event.worker not in state.processes and is_open
        state, actions = step(now, state, event)
        started += is_new
        exits += sum(isinstance(a, protocol.Exited) for a in actions)
    assert exits == started
    assert state.is_over


def test_sigterm_reaches_a_worker_that_runs_and_one_that_does_not_never_begins():
    assert after(START, FORKED, protocol.Terminate(1))[1] == [Do(Verb.TERMINATE, 1)]
    state, actions = after(START, protocol.Terminate(1))
    assert actions == [Do(Verb.KILL, 1), Do(Verb.CLOSE_LIFELINE, 1)]
    assert state.processes[1].exit_code == -9
    assert after(START, FORKED, Gone(1, 3), protocol.Terminate(1))[1] == []
