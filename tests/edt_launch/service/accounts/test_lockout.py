from edt_launch.service.accounts.lockout import FORGOTTEN, FREE, LONGEST, Lockout


def test_waiting_begins_after_a_few_failures_and_doubles() -> None:
    locks, now, waits = Lockout(), 100.0, []
    for _ in range(10):
        locks.failed("ann", now)
        waits.append(locks.wait("ann", now))
        now += waits[-1]
        assert locks.wait("ann", now) == 0
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, LONGEST, LONGEST]
    assert locks.wait("bob", now) == 0


def test_it_is_forgotten_after_success_and_after_a_while() -> None:
    locks = Lockout()
    for _ in range(FREE):
        locks.failed("ann", 0.0)
        locks.failed("bob", 0.0)
    locks.succeeded("ann")
    assert locks.wait("ann", 0.0) == 0
    assert locks.wait("bob", 0.5) == 0.5
    locks.failed("bob", FORGOTTEN)
    assert locks.wait("bob", FORGOTTEN) == 0
