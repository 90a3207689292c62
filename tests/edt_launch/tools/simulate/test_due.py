from edt_launch.tools.simulate.due import Due
from small import job


def test_users_share_alike_and_their_jobs_share_what_is_theirs():
    live = [job("a1"), job("a2"), job("b1", user="bob")]
    assert Due(8)(live) == {"a1": 2, "a2": 2, "b1": 4}


def test_what_a_user_cannot_use_goes_to_others():
    live = [job("a1"), job("b1", user="bob", max=1)]
    assert Due(8)(live) == {"a1": 7, "b1": 1}


def test_without_users_all_jobs_share_alike():
    live = [job("a1"), job("a2"), job("b1", user="bob", max=8)]
    assert Due(6, by_user=False)(live) == {"a1": 2, "a2": 2, "b1": 2}
