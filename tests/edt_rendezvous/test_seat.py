"""Numbers of the agents on a machine."""

from edt_rendezvous.seat import Seat


def test_agents_have_the_lowest_free_numbers_and_take_those_of_agents_that_ended(tmp_path):
    first, second, third = (Seat("job", tmp_path) for _ in range(3))
    assert [first.number, second.number, third.number] == [0, 1, 2]
    assert Seat("another job", tmp_path).number == 0
    assert not third.take_lower()
    first.release()
    assert third.take_lower()
    assert third.number == 0
    assert Seat("job", tmp_path).number == 2
