import pytest
from sqlalchemy import column, select, table

from edt_launch.service.database.paging import page


@pytest.mark.parametrize(
    "after, newest, said",
    [
        (0, False, "FROM t ORDER BY n LIMIT 2"),
        (7, False, "FROM t WHERE n > 7 ORDER BY n LIMIT 2"),
        (0, True, "FROM t ORDER BY n DESC LIMIT 2"),
        (7, True, "FROM t WHERE n < 7 ORDER BY n DESC LIMIT 2"),
    ],
)
def test_a_page_begins_after_a_number(after: int, newest: bool, said: str) -> None:
    number = column("n")
    query = page(select(number).select_from(table("t")), number, after, 2, newest)
    text = str(query.compile(compile_kwargs={"literal_binds": True}))
    assert " ".join(text.split("\n ")).replace("  ", " ").replace(" \n", " ").endswith(said), text
