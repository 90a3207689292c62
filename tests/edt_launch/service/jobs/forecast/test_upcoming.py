from edt_launch.allocator.forecast.prediction import Start
from edt_launch.service.jobs.forecast.upcoming import Upcoming, begins

AT = 45_600.0


def test_it_says_when_a_job_begins() -> None:
    for after, is_any, text in (
        ((), False, "starts as soon as devices have been handed over"),
        (("j4", "j7"), True, "starts when j4 or j7 ends, about 12:40 UTC"),
        (("j4", "j5", "j7"), False, "starts when j4, j5 and j7 have ended, about 12:40 UTC"),
    ):
        told = begins("j9", Upcoming(["j8", "j9"], {"j9": Start("j9", AT, 2, after, is_any)}, [], {}))
        assert told is not None
        assert told["text"] == f"is number 2 of 2 that wait, and {text}"
        assert (told["at"], told["size"], told["after"]) == (AT, 2, list(after))


def test_it_says_that_nobody_can_tell() -> None:
    told = begins("j8", Upcoming(["j8"], {}, [], {}))
    assert told is not None
    assert told["at"] is None
    assert "nobody can tell" in told["text"]
    assert begins("j1", Upcoming(["j8"], {}, [], {})) is None
