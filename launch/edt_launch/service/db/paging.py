"""Lists that are read page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Select


class Numbered(Protocol):
    """A record that has its place in the order of creation."""

    @property
    def number(self) -> int: ...  # noqa: D102


RecordT = TypeVar("RecordT", bound=Numbered)


@dataclass(frozen=True)
class PageQuery:
    """Which part of a list is asked for: so many, from the one after that number; or the newest first."""

    limit: int
    after: int = 0
    newest: bool = False

    def of(self, query: Select[Any], number: ColumnElement[int]) -> Select[Any]:
        """This page of a query in the order of a column, and one row more."""
        return page(query, number, self.after, self.limit + 1, self.newest)

    def cut(self, found: Sequence[RecordT]) -> tuple[Sequence[RecordT], int | None]:
        """What `of` has found without the row too many, and `after` of the next page; None at the end."""
        return found[: self.limit], found[self.limit - 1].number if len(found) > self.limit else None


def page(
    query: Select[Any], number: ColumnElement[int], after: int, limit: int | None, newest: bool
) -> Select[Any]:
    """A page of a query in the order of a column, from the row that follows `after`; 0: from the first one.

    With `newest`, the highest numbers come first.
    """
    if after:
        query = query.where(number < after if newest else number > after)
    return query.order_by(number.desc() if newest else number).limit(limit)
