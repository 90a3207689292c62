import json
from pathlib import Path

import pytest

from edt_launch.cli.client.configuration import Configuration, checked, load
from edt_launch.cli.errors import MistakenError, UnreachableError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """An environment whose files are in a folder of the test's."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "EDT_HOME": str(tmp_path / "edt")}


def local_service(places: dict[str, str]) -> None:
    home = Path(places["EDT_HOME"])
    write(home / "server.json", json.dumps({"url": "http://127.0.0.1:1", "pid": 1}))
    write(home / "token", "local\n")


def file_of(places: dict[str, str], text: str) -> str:
    return str(write(Path(places["XDG_CONFIG_HOME"]) / "edt" / "config.toml", text))


def test_a_service_on_this_machine_is_found_with_its_token(places: dict[str, str]) -> None:
    local_service(places)
    assert load(places) == Configuration(
        "http://127.0.0.1:1",
        "local",
        str(Path(places["EDT_HOME"]) / "server.json"),
        str(Path(places["EDT_HOME"]) / "token"),
    )


def test_the_file_comes_before_it_and_the_environment_before_both(places: dict[str, str]) -> None:
    local_service(places)
    path = file_of(places, 'url = "https://edt.example/"\ntoken = "mine"\n')
    assert load(places) == Configuration("https://edt.example", "mine", path, path)
    given = {**places, "EDT_URL": "http://other:7/", "EDT_TOKEN": "given"}
    assert load(given) == Configuration("http://other:7", "given", "EDT_URL", "EDT_TOKEN")


def test_another_address_gets_no_token_of_a_file(places: dict[str, str]) -> None:
    local_service(places)
    file_of(places, 'url = "https://edt.example"\ntoken = "mine"\n')
    assert load({**places, "EDT_URL": "http://other:7"}).token is None
    assert load({**places, "EDT_URL": "https://edt.example/api/v1"}).token == "mine"
    assert load({**places, "EDT_URL": "http://127.0.0.1:1"}).token == "local"


def test_a_service_that_has_ended_is_one_that_cannot_be_reached(places: dict[str, str]) -> None:
    local_service(places)
    (Path(places["EDT_HOME"]) / "server.json").unlink()
    with pytest.raises(UnreachableError, match="does not run; start it with 'edt serve'"):
        load(places)


@pytest.mark.parametrize("url", ["127.0.0.1:80", "http://x:port", "http://x/?a=1", "http://u:p@x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(MistakenError, match="EDT_URL"):
        checked(url, "EDT_URL")


@pytest.mark.parametrize(
    "text, found",
    [
        ("url = ", "config.toml"),
        ('address = "x"', "'address'"),
        ('url = "x"', "'x'"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(places: dict[str, str], text: str, found: str) -> None:
    file_of(places, text)
    with pytest.raises(MistakenError, match=found):
        load(places)


@pytest.mark.parametrize("token", ["edt_s3cret\nx", "edt_s3cret\N{EURO SIGN}", "edt_s3cret x"])
def test_what_is_no_token_is_refused_without_its_value(places: dict[str, str], token: str) -> None:
    file_of(places, f"url = 'http://h:1'\ntoken = {json.dumps(token)}\n")
    for given in (places, {**places, "EDT_URL": "http://other:1", "EDT_TOKEN": token}):
        with pytest.raises(MistakenError, match="is no token") as refused:
            load(given)
        assert "s3cret" not in str(refused.value)
