from edt_launch.service.jobs.forecast.foreseen import of_starting


def test_what_starts_comes_first_and_what_waits_says_why() -> None:
    other = {"job": "jbbbbbbbb", "name": "digits", "owner": "bob", "from": 4, "to": 2, "reason": ""}
    new = {"job": None, "name": "net", "owner": "ann", "from": 0, "to": 2, "reason": "fair share"}
    assert of_starting([other, new]) == ["net starts at once with 2.", "digits of bob goes from 4 to 2."]
    waits = new | {"to": 0, "reason": "waits: no room for 8"}
    assert of_starting([waits]) == ["net waits: no room for 8.", "No other job would change now."]
