"""Projects and their members."""

from collections.abc import Collection

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.db.tables import definitions, experiments, members, projects
from edt_launch.service.experiments.records import MemberRecord, ProjectRecord, Role
from edt_launch.service.experiments.stores.versioned import Versioned, of_user


class InUseError(Exception):
    """Something cannot be forgotten, since other things need it: the names of the first of them."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


class Projects(Versioned[ProjectRecord]):
    """The tables of projects and of their members."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, projects, ProjectRecord, members)

    def named(self, name: str) -> ProjectRecord | None:
        """The project of an id, or of a name, if there is one."""
        found = self._found(select(projects).where(or_(projects.c.name == name, projects.c.id == name)))
        return max(found, key=lambda project: project.id == name, default=None)

    def of(self, user: str | None, wanted: PageQuery) -> list[ProjectRecord]:
        """A page of projects, and one more, in the order of their creation.

        `user`: those that they own or are a member of; None: all.
        """
        query = select(projects)
        if user is not None:
            query = query.where(projects.c.id.in_(of_user(user)))
        return self._page(query, wanted)

    def names(self, wanted: Collection[str]) -> dict[str, str]:
        """The names of projects, by their ids."""
        query = select(projects.c.id, projects.c.name).where(projects.c.id.in_(sorted(wanted)))
        return dict(map(tuple, self._database.rows(query)))

    def delete(self, project: str) -> bool:
        """Forget a project and who its members are; whether it was there.

        Raises:
            InUseError: it has definitions or experiments.
        """
        try:
            return self._database.execute(delete(projects).where(projects.c.id == project))
        except IntegrityError:
            raise InUseError(self._contents(project)) from None

    def _contents(self, project: str) -> list[str]:
        found: list[str] = []
        for table in (experiments, definitions):
            query = select(table.c.name).where(table.c.project == project).order_by(table.c.number).limit(10)
            found += [row.name for row in self._database.rows(query)]
        return found[:10]

    def members(self, project: str) -> list[MemberRecord]:
        """A project's members, by name."""
        query = select(members).where(members.c.project == project).order_by(members.c.user)
        return [MemberRecord(**row._mapping) for row in self._database.rows(query)]

    def roles(self, user: str, wanted: Collection[str]) -> dict[str, Role]:
        """A user's roles as a member of projects, by the projects' ids."""
        query = select(members.c.project, members.c.role)
        rows = self._database.rows(query.where(members.c.user == user, members.c.project.in_(sorted(wanted))))
        return dict(map(tuple, rows))

    def owned(self, user: str, wanted: Collection[str]) -> frozenset[str]:
        """The ids of projects that somebody owns, among those wanted."""
        fits = (projects.c.owner == user, projects.c.id.in_(sorted(wanted)))
        return frozenset(row.id for row in self._database.rows(select(projects.c.id).where(*fits)))

    def put_member(self, member: MemberRecord, most: int) -> bool:
        """Add a member, or give one another role; False if there are `most` already, or no such user.

        A project that has just been deleted counts as full.
        """
        key = (members.c.project == member.project, members.c.user == member.user)
        count = select(func.count()).select_from(members).where(members.c.project == member.project)
        lock = select(projects.c.id).where(projects.c.id == member.project).with_for_update()
        try:
            with self._database.writing() as connection:
                connection.execute(lock)
                if connection.execute(update(members).where(*key).values(role=member.role)).rowcount:
                    return True
                if (connection.execute(count).scalar() or 0) >= most:
                    return False
                connection.execute(insert(members).values(vars(member)))
                return True
        except IntegrityError:
            return False

    def remove_member(self, project: str, user: str) -> bool:
        """Have somebody no longer be a member; whether they were."""
        key = (members.c.project == project, members.c.user == user)
        return self._database.execute(delete(members).where(*key))
