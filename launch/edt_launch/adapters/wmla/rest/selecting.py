"""Which applications a client asks for, and in which order: what the lists below `/scheduler` understand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.answers import files, views
from edt_launch.adapters.wmla.answers.views import Execution, Json
from edt_launch.adapters.wmla.rest import lookup
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError
from edt_launch.service.jobs.query import JobQuery

MAX_APPLICATIONS = 1000  # applications of one answer

NEWEST_FIRST = "-submit_time"

States = Annotated[tuple[str, ...], Query(alias="state")]


def states_of(given: Sequence[str]) -> frozenset[str] | None:
    """The states in lists with commas, in capitals; None if there are none."""
    names = (name.strip().upper() for text in given for name in text.split(","))
    return frozenset(name for name in names if name) or None


@dataclass(frozen=True)
class Selection:
    """The parameters of a list; an empty one selects everything.

    Attributes:
        state: lists of states.
        application, driver: the ids of one.
        name: of applications.
        group: the id of an instance group.
        search: a part of an id, a name or a submitter, whatever the case.
        sort: a field, downwards with ``-`` before it.
        order: ``asc`` or ``desc``, which comes before the ``-``.
    """

    state: States = ()
    application: Annotated[str, Query(alias="applicationid")] = ""
    name: Annotated[str, Query(alias="applicationname")] = ""
    driver: Annotated[str, Query(alias="driverid")] = ""
    group: Annotated[str, Query(alias="sigId")] = ""
    search: str = ""
    sort: str = NEWEST_FIRST
    order: str = ""
    start: Annotated[int, Query(ge=0, le=10**6)] = 0
    length: Annotated[int, Query(ge=0, le=10**6)] = MAX_APPLICATIONS

    def select(
        self, context: Context, user: UserRecord, shown: Callable[[Execution], Json]
    ) -> list[Execution]:
        """A user's, or everybody's for administrators, in their order, from `start` on.

        Args:
            context: the service.
            user: who asks.
            shown: the fields that can be sorted by.

        Raises:
            InvalidError: there is no such application, or no such field.
        """
        found = [one for one in self._stored(context, user) if self._fits(one)]
        if not self._is_plain and self.sort:
            found = self._sorted(found, shown)
        return found[self.start : self.start + min(self.length, MAX_APPLICATIONS)]

    @property
    def _is_plain(self) -> bool:
        """Whether the newest jobs that the database has are what is asked for."""
        selects = any((self.state, self.name, self.driver, self.group, self.search))
        return not selects and (self.sort, self.order) == (NEWEST_FIRST, "")

    def _stored(self, context: Context, user: UserRecord) -> list[Execution]:
        """What the database can select, the newest first."""
        if self.application:
            return [lookup.find(context, user, self.application)]
        names = states_of(self.state)
        wanted = JobQuery(
            states=None if names is None else views.behind(names),
            owners=None if user.is_admin else [user.name],
            limit=self.start + min(self.length, MAX_APPLICATIONS) if self._is_plain else None,
            newest=True,
        )
        page = context.store.jobs.page(wanted)
        return lookup.with_names(context, page.jobs)

    def _fits(self, one: Execution) -> bool:
        names = states_of(self.state)
        if names is not None and views.state_of(one.job) not in names:
            return False
        if self.group and self.group.lower() != identity.group_id(one.group):
            return False
        if self.name and self.name != one.app_name:
            return False
        if self.driver and self.driver not in (one.names.driver, files.driver(one)):
            return False
        texts = (one.names.id, one.app_name, one.job.owner)
        return any(self.search.lower() in text.lower() for text in texts)

    def _sorted(self, found: list[Execution], shown: Callable[[Execution], Json]) -> list[Execution]:
        field, order = self.sort.removeprefix("-"), self.order.lower()
        if order not in ("", "asc", "desc"):
            raise InvalidError(f"order: {self.order!r:.40}: expected asc or desc")
        rows = [(shown(one), one) for one in found]
        if rows and field not in rows[0][0]:
            raise InvalidError(
                f"sort: {field!r:.40} is no field of an application", f"use one of {', '.join(rows[0][0])}"
            )
        is_down = order == "desc" if order else self.sort.startswith("-")
        rows.sort(key=lambda row: row[0][field], reverse=is_down)
        return [one for _, one in rows]
