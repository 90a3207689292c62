from pathlib import Path

import pytest

from edt_launch.service.app.settings import SettingsError, load


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("EDT_HOME", "EDT_PORT", "EDT_HOST", "EDT_SLOTS", "EDT_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_flag_before_environment_before_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ".edt"
    home.mkdir()
    (home / "service.toml").write_text('port = 1\nslots = 1\nhost = "file"\n')
    monkeypatch.setenv("EDT_PORT", "2")
    monkeypatch.setenv("EDT_SLOTS", "2")
    settings = load(port=3, slots=None)
    assert (settings.port, settings.slots, settings.host) == (3, 2, "file")
    assert settings.home == home


@pytest.mark.parametrize(
    "flags, named",
    [
        ({"port": 70000}, "port: 70000: expected 65535 or less"),
        ({"database": "mysql://ann:secret@host/x"}, "database: (hidden): database 'mysql' is"),
        ({"database": "postgresql://ann:secret@host:port/x"}, "database: (hidden): the database's URL"),
        ({"notify": "mail 'x"}, "No closing quotation"),
        ({"port_range": "9:8"}, "--port-range '9:8': expected LOW:HIGH"),
        ({"port_range": "2000:2009", "horovodrun": True}, "horovodrun and port_range: give one"),
    ],
)
def test_what_makes_no_sense_is_named(flags: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**flags)
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("data_fs", ["~", "~/.edt", "~/.edt/jobs", "~/.edt/data/more", "/", "~/link"])
def test_data_that_would_show_the_service_s_folder_is_refused(data_fs: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".edt")
    with pytest.raises(SettingsError, match=r"data_fs: .* the service's folder"):
        load(data_fs=data_fs)


@pytest.mark.parametrize("data_fs", [None, "~/.edt/data", "~/data", "~/.edt2"])
def test_data_beside_the_service_s_folder_or_in_its_place_there(data_fs: str | None, tmp_path: Path) -> None:
    assert load(data_fs=data_fs).data_folder.is_relative_to(tmp_path)
    (tmp_path / ".edt").mkdir()
    (tmp_path / ".edt/data").symlink_to("..")
    with pytest.raises(SettingsError, match="the service's folder"):
        load()


def test_an_unknown_name_in_the_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDT_TOKEN", "of a client")
    (tmp_path / "service.toml").write_text("prot = 1234\n")
    with pytest.raises(SettingsError, match=r"service\.toml: nothing is called 'prot'"):
        load(home=tmp_path)
    (tmp_path / "service.toml").write_text("port = 1234\r\n", encoding="utf-8-sig")
    assert load(home=tmp_path).port == 1234
