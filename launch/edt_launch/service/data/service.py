"""What REST and pages do with the data folder.

Everybody who may use the service reads all of it, as jobs do. A data set is changed by its owner and by
administrators, and neither replaced nor deleted while a job or search that has not ended names it.
"""

import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.data import folders
from edt_launch.service.data.data_set import NAME, USERS, DataSet, missing, taken
from edt_launch.service.errors import ConflictError, ForbiddenError, NotFoundError
from edt_launch.service.files.archives.packing import Member
from edt_launch.service.names import USER

MAX_NAMED = 10
"""Jobs and searches that are named of those that use a data set."""

MAX_OFFERED = 200
"""Folders that forms offer."""

MAX_INNER = 20
"""Folders in a data set that forms offer."""

_SLASH = r"/(?:\.?/)*"
"""Slashes between two names, and "." between them."""


def top(context: Context) -> folders.Listing:
    """What is at the top of the data folder; raises like `folders.listing`."""
    return listing(context, "")


def listing(context: Context, path: str) -> folders.Listing:
    """What is in a folder below the data folder; nothing as long as the data folder itself is not there.

    Raises like `folders.listing`.
    """
    root = context.settings.data_folder
    if not folders.normal(path) and not os.path.lexists(root):
        return folders.Listing("", (), (), complete=True)
    return folders.listing(root, path, is_for_all=context.settings.has_job_users)


def opened(context: Context, path: str) -> BinaryIO:
    """Open a file below the data folder; raises like `folders.open_file`."""
    return folders.open_file(context.settings.data_folder, path, is_for_all=context.settings.has_job_users)


def all_sets(context: Context) -> dict[str, Any]:
    """All data sets, like `rest.DataSets`."""
    found, is_complete = context.data_sets.all()
    used = _used(context)
    return {"datasets": [_shown(context, one, used) for one in found], "complete": is_complete}


def one_set(context: Context, owner: str, name: str) -> dict[str, Any]:
    """A data set, like `rest.DataSet`; `NotFoundError` if there is none of that name."""
    found = context.data_sets.get(owner, name)
    if found is None:
        raise missing(owner, name)
    return _shown(context, found, _used(context))


def check_change(context: Context, user: UserRecord, owner: str, *names: str) -> None:
    """See whether a user may change data sets of an owner: those of some names so that what is there goes.

    Raises:
        ForbiddenError: they are somebody else's.
        NotFoundError: there is no such user.
        ConflictError: a job or search that has not ended names one.
    """
    if owner != user.name and not user.is_admin:
        raise ForbiddenError(f"that is a data set of {owner}", "ask them, or an administrator")
    if context.store.accounts.user(owner) is None and not context.data_sets.names(owner):
        raise NotFoundError(f"there is no user {owner!r}", "name one that is there")
    used = _used(context) if names else {}
    for name in names:
        if users := used.get((owner, name)):
            raise ConflictError(
                f"the data set {owner}/{name} is used by {named(users)}, which "
                f"{'has' if len(users) == 1 else 'have'} not ended",
                "stop them, or use another name",
            )


def check_new(context: Context, user: UserRecord, owner: str, name: str, *, is_replacing: bool) -> None:
    """See whether a user may upload a data set of that name; raises like `put`."""
    check_change(context, user, owner, *([name] if is_replacing else []))
    if not is_replacing and context.data_sets.get(owner, name) is not None:
        raise taken(owner, name)


def put(
    context: Context, user: UserRecord, owner: str, name: str, archive: BinaryIO, *, is_replacing: bool
) -> dict[str, Any]:
    """Make a data set of an archive; raises like `check_change` and `DataSets.put`."""
    check_new(context, user, owner, name, is_replacing=is_replacing)
    check = _check(context, user, owner, name, is_replacing=is_replacing)
    made = context.data_sets.put(owner, name, archive, is_replacing=is_replacing, check=check)
    context.bus.notify(Topic.JOBS)
    return _shown(context, made, {})


def put_files(
    context: Context,
    user: UserRecord,
    owner: str,
    name: str,
    files: Sequence[tuple[str, BinaryIO | Path]],
    *,
    is_replacing: bool,
) -> dict[str, Any]:
    """Put files into a data set by their paths there; raises like `check_change` and `DataSets.put_files`."""
    check = _check(context, user, owner, name, is_replacing=is_replacing)
    check()
    made = context.data_sets.put_files(owner, name, files, is_replacing=is_replacing, check=check)
    context.bus.notify(Topic.JOBS)
    return _shown(context, made, _used(context))


def delete(context: Context, user: UserRecord, owner: str, name: str) -> Callable[[], None]:
    """Delete a data set; what is returned does that; raises like `check_change` and `DataSets.delete`."""
    finish = context.data_sets.delete(owner, name, check=partial(check_change, context, user, owner, name))
    context.bus.notify(Topic.JOBS)
    return finish


def delete_file(context: Context, user: UserRecord, owner: str, name: str, path: str) -> None:
    """Delete a file of a data set; raises like `check_change` and `DataSets.delete_file`."""
    check = partial(check_change, context, user, owner, name)
    context.data_sets.delete_file(owner, name, path, check=check)
    context.bus.notify(Topic.JOBS)


def _check(
    context: Context, user: UserRecord, owner: str, name: str, *, is_replacing: bool
) -> Callable[[], None]:
    return partial(check_change, context, user, owner, *([name] if is_replacing else []))


def set_of(path: str) -> tuple[str, str, str] | None:
    """Owner and name of the data set that a path below the data folder is in, and its path in there."""
    found = re.fullmatch(rf"{USERS}/({USER})/({NAME})(?:/(.*))?", folders.normal(path))
    return None if found is None else (found[1], found[2], found[3] or "")


class Packed(NamedTuple):
    """What is packed of a folder: with names in an archive, the bytes of its files, and whether it is all."""

    members: list[Member]
    size: int
    complete: bool
    reader: folders.FolderReader


def packed(context: Context, path: str) -> Packed:
    """What is in a folder below the data folder.

    Raises:
        InvalidError: it is no folder there.
        TooLargeError: it has too many files.
    """
    root, is_for_all = context.settings.data_folder, context.settings.has_job_users
    found, is_whole = folders.tree(root, path, context.settings.max_data_files, is_for_all=is_for_all)
    above = folders.normal(path)
    name = above.rpartition("/")[2] or root.name
    inside = (Member(f"{name}/{one.path[len(above) :].lstrip('/')}", root / one.path) for one in found)
    size = sum(one.status.st_size for one in found if stat.S_ISREG(one.status.st_mode))
    reader = folders.FolderReader(root, is_for_all)
    return Packed([Member(name, root / above), *inside], size, is_whole, reader)


def offered(context: Context, user: UserRecord, most: int = MAX_OFFERED) -> list[str]:
    """Folders to choose from: data sets, the user's own ones first, and other folders.

    In all, `folders.MAX_OFFERED` entries of folders are looked at. What cannot be read is left out.
    """
    root, is_for_all = context.settings.data_folder, context.settings.has_job_users
    sets, _ = context.data_sets.all()
    left, mine = folders.MAX_OFFERED, []
    for one in [one for one in sets if one.owner == user.name][:most]:
        inside, left = folders.folders_in(root, one.path, left, is_for_all=is_for_all)
        if inside is not None:
            mine += [one.path, *(f"{one.path}/{name}" for name in inside[:MAX_INNER])]
    theirs = [one.path for one in sets if one.owner != user.name]
    found = folders.folders(root, most, left, is_for_all=is_for_all)
    others = [one for one in found if one.partition("/")[0] != USERS]
    return [*sorted(mine), *others, *theirs][:most]


def named(ids: Sequence[str]) -> str:
    """Jobs and searches, in a message."""
    return ", ".join(ids[:MAX_NAMED]) + (" and others" if len(ids) > MAX_NAMED else "")


def _shown(context: Context, one: DataSet, used: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    location = str(context.settings.data_folder / one.path)
    users = list(used.get((one.owner, one.name), ()))
    return {**vars(one), "path": one.path, "location": location, "used_by": users}


def _used(context: Context) -> Mapping[tuple[str, str], Sequence[str]]:
    """Jobs and searches that have not ended, by owner and name of the data sets that they name."""
    return used_by(context.settings.data_folder, _texts(context))


def _texts(context: Context) -> Iterator[tuple[str, str]]:
    """Ids of jobs and searches that have not ended, each with texts that may name a data set."""
    for job in context.store.jobs.live():
        for text in (job.data_dir or "", *job.command, *job.environment.values()):
            yield job.id, text
    for search in context.store.experiments.live_searches():
        yield search.id, json.dumps(search.template, ensure_ascii=False)


def used_by(root: Path, texts: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Which data sets are named, by owner and name, in whose texts.

    A path may name the folder of data by a link, and have slashes, "." and ".." that say nothing. A dot at
    the end may end a sentence, or the name: both are taken to be meant.
    """
    roots = (str(root), os.path.realpath(root))
    folder = "|".join(_SLASH.join(map(re.escape, f"{one}/{USERS}".split("/"))) for one in roots)
    pattern = re.compile(rf"(?:{folder}){_SLASH}({USER}){_SLASH}({NAME})")
    used: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for id_, text in texts:
        for owner, name in pattern.findall(f"{text}\n{os.path.normpath(text)}"):
            used[owner, name][id_] = used[owner, name.rstrip(".")][id_] = None
    return {key: list(ids) for key, ids in used.items()}
