from edt_launch.service.database.account_records import TokenRecord
from edt_launch.service.sessions import IDLE
from edt_launch.service.web.views.account import Session, browsers


def test_browsers_are_the_sessions_that_are_not_over() -> None:
    this = TokenRecord("a", "", "ann", "browser", 5.0, 50.0, is_session=True, idle_until=IDLE, used=7.0)
    newer = TokenRecord("b", "", "ann", "browser", 6.0, 60.0, is_session=True, idle_until=IDLE + 6.0)
    over = TokenRecord("c", "", "ann", "browser", 1.0, 50.0, is_session=True, idle_until=8.0)
    program = TokenRecord("d", "", "ann", "laptop", 1.0)
    assert browsers([this, newer, over, program], this, 9.0) == [
        Session("b", 6.0, 6.0, 60.0, False),
        Session("a", 5.0, 7.0, 50.0, True),
    ]
