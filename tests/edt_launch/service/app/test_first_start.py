import stat
from pathlib import Path

import pytest

from edt_launch.service.accounts import tokens
from edt_launch.service.app.first_start import SharedFolderError, ensure_administrator, make_home, this_user
from edt_launch.service.app.home import Home
from edt_launch.service.db.store import Store


def test_only_the_owner_can_look_into_the_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "edt")
    make_home(home)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    (home.incoming / "half").mkdir()
    (home.jobs / "jaaaaaaaa").mkdir()
    home.root.chmod(0o755)
    make_home(home)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert list(home.incoming.iterdir()) == []
    assert [path.name for path in home.jobs.iterdir()] == ["jaaaaaaaa"]


def test_a_folder_that_everybody_uses_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(SharedFolderError, match="a folder of the service's own in it"):
        make_home(Home(shared))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_the_token_is_kept_from_start_to_start(tmp_path: Path, store: Store) -> None:
    home = Home(tmp_path)
    token = ensure_administrator(store, home, 1.0)
    assert home.token.read_text() == token + "\n"
    assert stat.S_IMODE(home.token.stat().st_mode) == 0o600
    found = tokens.bearer(store.accounts, token, 2.0)
    user = found[0]
    assert user.is_admin
    assert user.name == this_user()
    assert ensure_administrator(store, home, 3.0) == token


def test_a_lost_token_is_replaced_and_opens_nothing(tmp_path: Path, store: Store) -> None:
    home = Home(tmp_path)
    lost = ensure_administrator(store, home, 1.0)
    found = tokens.bearer(store.accounts, lost, 1.0)
    made, _ = tokens.issue(store.accounts, this_user(), "laptop", 1.0, parent=found[1])
    home.token.write_text("nonsense\n")
    new = ensure_administrator(store, home, 2.0)
    assert new != lost
    assert tokens.bearer(store.accounts, lost, 3.0) is None
    assert tokens.bearer(store.accounts, new, 3.0) is not None
    assert tokens.bearer(store.accounts, made, 3.0) is not None
