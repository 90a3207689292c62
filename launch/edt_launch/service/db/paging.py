"""Lists that are read page by page."""

from typing import Any

from sqlalchemy import ColumnElement, Select


def page(
    query: Select[Any], number: ColumnElement[int], after: int, limit: int | None, newest: bool
) -> Select[Any]:
    """A page of a query in the order of a column, from the row that follows `after`; 0: from the first one.

    With `newest`, the highest numbers come first.
    """
    if after:
        query = query.where(number < after if newest else number > after)
    return query.order_by(number.desc() if newest else number).limit(limit)
