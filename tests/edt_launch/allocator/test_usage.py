import json
from dataclasses import replace

import pytest
from hypothesis import given

from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Memory, Move, Owner, Usage, dump, load
from edt_launch.allocator.usage import advance, remember
from pools import Pool, applied, pools


def test_steady_use_does_not_depend_on_how_often_it_is_noted():
    often = Usage(0.0, 0.0, 1.0)
    for now in range(2, 102):
        often = advance(often, float(now), 3.0, 2.0, 50.0)
    once = advance(Usage(0.0, 0.0, 1.0), 101.0, 3.0, 2.0, 50.0)
    assert often.service == pytest.approx(once.service)
    assert often.entitlement == pytest.approx(once.entitlement)


def test_an_idle_owner_banks_nothing_and_a_waiting_one_does():
    held = (HostDevices("h", ("0", "1", "2", "3")),)
    jobs = (Job("a", "ann", 4, 4, 0.0, held=held), Job("b", "bob", 4, 4, 0.0))
    owners = (Owner("", None), Owner("ann"), Owner("bob"), Owner("idle"))
    owners = tuple(replace(owner, usage=Usage(at=100.0)) for owner in owners)
    pool = Pool(Cluster((Host("h", ("0", "1", "2", "3")),), owners), jobs, 100.0)
    after, _ = remember(110.0, pool.cluster, pool.jobs, pool.plan)
    used = {owner.name: owner.usage for owner in after}
    assert used["idle"] == Usage(0.0, 0.0, 110.0)
    assert (used["ann"].attained, used[""].attained, used["bob"].attained) == (40.0, 40.0, 0.0)
    assert used["ann"].service == pytest.approx(40, rel=1e-3)
    assert used["bob"] == Usage(0.0, pytest.approx(20, rel=1e-3), 110.0)


@given(pools("history", "usage"))
def test_a_memory_survives_being_written_down(pool):
    after = applied(pool, is_released=False).plan.memory
    assert load(json.loads(json.dumps(dump(after)))) == after
    assert load({"unknown": 1}) == Memory()
    moves = {"j": Move(("h",), 5.0)}
    assert load({"moves": {"j": {"hosts": ["h"], "cost": 5.0, "unknown": 1}}}) == Memory(moves=moves)
