import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ended import Edt
from fake_service import NOW, FakeService, job

READING = (
    ("ps",), ("top", "--once"), ("show", "train"), ("show", "train", "--series"), ("why", "train"),
    ("logs", "train"), ("hosts",), ("checkpoints", "train"), ("shares",), ("users",), ("tokens", "list"),
    ("search", "ls"), ("search", "show", "find-rate"),
)  # fmt: skip


@pytest.mark.parametrize("words", READING)
def test_whatever_is_read_fits_and_has_json(edt: Edt, service: FakeService, words: tuple[str, ...]) -> None:
    service.logs["jaaaaaaaa"] = ["[0] hello"]
    plain, as_json = edt(*words), edt(*words, "--json")
    assert plain.code == as_json.code == 0
    assert plain.out
    assert all(len(line) <= 80 for line in plain.out.splitlines())
    assert "\x1b" not in plain.out
    assert isinstance(json.loads(as_json.out), dict)
    assert plain.err == as_json.err == ""


def test_ps_shows_sizes_and_why_jobs_wait_or_failed(edt: Edt, service: FakeService) -> None:
    service.jobs["jddddddddd"] = job("jdddddddd", state="failed", ended=NOW, failure="rank 2: oops", size=0)
    service.jobs["jaaaaaaaa"]["target"] = 4
    lines = edt("ps").out.splitlines()
    assert lines[0].split() == ["ID", "NAME", "OWNER", "STATE", "SIZE", "OF", "PROGRESS", "LEFT", "SINCE"]
    assert lines[1].split()[:8] == ["jaaaaaaaa", "train", "ada", "running", "2→4", "1-4", "43%", "43s"]
    assert lines[2].split()[:6] == ["jbbbbbbbb", "eval", "bob", "queued", "0", "3-4"]
    assert lines[3] == "  ↳ waits for 3 devices at once: 2 are free"
    assert lines[5] == "  ↳ rank 2: oops"


def test_ps_asks_for_what_it_is_asked_for(edt: Edt, service: FakeService) -> None:
    assert edt("ps", "--all", "--state", "queued", "-q").out == "jbbbbbbbb\n"
    assert service.asked[-1].query == {"all": "1", "state": "queued", "limit": "500"}
    assert edt("ps", "--mine", "-q").out == "jaaaaaaaa\n"
    assert edt("ps", "--host", "n1", "--text", "x", "--experiment", "e", "--since", "1h").code == 0
    asked = service.asked[-1].query
    assert (asked["host"], asked["text"], asked["experiment"]) == ("n1", "x", "e")
    assert float(asked["submitted_since"]) > 0
    assert "is no time" in edt("ps", "--since", "x").err


def test_what_jobs_print_does_not_steer_the_terminal(edt: Edt, service: FakeService) -> None:
    service.jobs["jaaaaaaaa"]["name"] = "\x1b[2Jevil\nname"
    assert all("\x1b" not in edt(*words).out for words in (("ps",), ("top", "--once"), ("show", "jaaaaaaaa")))


@pytest.mark.parametrize("wish, state", [("stop", "stopping"), ("pause", "pausing")])
def test_wishes(edt: Edt, service: FakeService, wish: str, state: str) -> None:
    ended = edt(wish, "train", "jbbbbbbbb")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines() == [f"jaaaaaaaa {state}", f"jbbbbbbbb {state}"]
    assert [one["state"] for one in json.loads(edt(wish, "train", "--json").out)["jobs"]] == [state]


def test_jobs_that_ended_long_ago_are_found_by_name_and_beginning(edt: Edt, service: FakeService) -> None:
    service.jobs["joldoldol"] = job("joldoldol", name="once", state="succeeded", ended=NOW - 1e6)
    service.old.add("joldoldol")
    for text in ("once", "jold"):
        assert json.loads(edt("show", text, "--json").out)["id"] == "joldoldol"
    assert edt("show", "never").code == 6


@pytest.mark.parametrize(
    "words",
    [("show", ""), ("stop", ""), ("logs", ""), ("drain", ""), ("shares", ""),
     ("shares", "", "--policy", "fair"), ("users", "remove", ""), ("tokens", "revoke", "")],
)  # fmt: skip
def test_an_empty_name_is_a_mistake(edt: Edt, service: FakeService, words: tuple[str, ...]) -> None:
    ended = edt(*words)
    assert ended.code == 2
    assert "''" in ended.err or "empty" in ended.err


def test_a_mistyped_name_among_several_changes_nothing(edt: Edt, service: FakeService) -> None:
    assert edt("stop", "train", "nosuch").code == 6
    assert not [asked for asked in service.asked if asked.method == "POST"]


def test_set_sends_only_what_is_given(edt: Edt, service: FakeService) -> None:
    ended = edt("set", "train", "--max", "8", "--weight", "3")
    assert (ended.code, service.asked[-1].json) == (0, {"max": 8, "weight": 3.0})
    assert ended.out.splitlines() == ["jaaaaaaaa: max was 4, is 8", "jaaaaaaaa: weight was 1.0, is 3.0"]
    assert edt("set", "train", "--max", "8").out == "jaaaaaaaa: max is 8 already\n"
    said = edt("set", "train", "--tags", "lr-3, best", "--comment", "").out.splitlines()
    assert said == ["jaaaaaaaa: tags was empty, is lr-3, best", "jaaaaaaaa: comment is empty already"]
    assert edt("set", "train").code == 2


def test_drain_and_undo(edt: Edt, service: FakeService) -> None:
    dry = edt("drain", "node1", "--dry-run")
    assert dry.out == "no job would change now\n"
    assert "would stay until it ends" in dry.err
    assert edt("drain", "node1").err == "node1 draining\n"
    assert edt("drain", "--undo", "node1").err == "node1 up\n"
    service.is_admin = False
    assert edt("drain", "node1").code == 5


def test_a_share_is_set_with_what_is_given(edt: Edt, service: FakeService) -> None:
    assert edt("shares", "ada", "--weight", "3", "--limit", "none", "--keeps").code == 0
    put = next(asked for asked in service.asked if asked.method == "PUT")
    assert (put.path, put.json) == ("/shares/ada", {"weight": 3.0, "limit": None, "lends": False})


def test_a_budget_is_set_and_shown(edt: Edt, service: FakeService) -> None:
    out = edt("shares", "ada", "--budget", "500").out
    put = next(asked for asked in service.asked if asked.method == "PUT")
    assert (put.path, put.json) == ("/shares/ada", {"budget": 500.0})
    assert "USED  BUDGET" in out
    assert "12.5 h    40 h" in out
    assert edt("shares", "ada", "--budget", "much").code == 2


def test_a_node_of_the_tree_is_removed(edt: Edt, service: FakeService) -> None:
    lines = edt("shares", "lab", "--remove", "--dry-run").out.splitlines()
    assert lines[1].split() == ["jaaaaaaaa", "train", "lab", "2", "3"]
    assert json.loads(edt("shares", "lab", "--remove", "--json").out) == {"removed": "lab"}
    asked = [(one.path, one.query) for one in service.asked if one.method == "DELETE"]
    assert asked == [("/shares/lab", {"dry_run": "1"}), ("/shares/lab", {})]


@pytest.mark.parametrize(
    "words",
    [
        *(("--weight", "3"), ("ada", "--limit", "many"), ("nobody",)),
        *(("--remove",), ("ada", "--remove", "--weight", "3")),
    ],
)
def test_shares_that_make_no_sense(edt: Edt, service: FakeService, words: tuple[str, ...]) -> None:
    assert edt("shares", *words).code == 2
    assert {asked.method for asked in service.asked} <= {"GET"}


def test_only_the_token_goes_to_standard_output(edt: Edt, service: FakeService) -> None:
    assert edt("users", "add", "bob").out == "edt-new\n"
    assert edt("tokens", "add", "--name", "laptop", "--lasts", "30d").out == "edt-new\n"
    assert service.asked[-1].json["name"] == "laptop"
    assert edt("tokens", "add", "--lasts", "soon").code == 2
    assert edt("tokens", "revoke", "t1").code == 0
    assert service.asked[-1].query == {}
    assert edt("tokens", "revoke", "t1", "--only").code == 0
    assert service.asked[-1].query == {"only": "1"}
    assert edt("users", "remove", "bob").code == 0
    assert service.asked[-1].path == "/users/bob"


def test_a_password_comes_from_standard_input_or_a_terminal(
    edt: Edt, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    assert edt("users", "password", "bob", "--password-stdin").code == 0
    assert (service.asked[-1].method, service.asked[-1].path) == ("PUT", "/users/bob/password")
    assert service.asked[-1].json == {"password": "correct horse"}
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    told = edt("users", "password", "bob", "--password-stdin", "--revoke-tokens")
    assert service.asked[-1].json == {"password": "correct horse", "revoke_tokens": True}
    assert "tokens" in told.err
    refused = edt("users", "password", "bob")
    assert refused.code != 0
    assert "--password-stdin" in refused.err


def test_logs_that_are_searched_are_asked_for_until_the_end(edt: Edt, service: FakeService) -> None:
    service.logs["jaaaaaaaa"] = ["[0] an error", "[0] fine", "[1] another error"]
    assert edt("logs", "jaaaaaaaa", "--search", "error").out == "[0] an error\n[1] another error\n"
    for wanted in (("--search", "error"), ("--level", "error")):
        for more in (("-f",), ("-n", "3")):
            failed = edt("logs", "jaaaaaaaa", *wanted, *more)
            assert failed.code == 2
            assert "--search needs a text" in failed.err


def test_logs_are_searched_for_lines_of_some_time(edt: Edt, service: FakeService) -> None:
    service.logs["jaaaaaaaa"] = ["[0] one"]
    assert edt("logs", "jaaaaaaaa", "--since", "2026-03-01T12:30Z", "--until", "0s").out == "[0] one\n"
    query = service.asked[-1].query
    assert float(query["since"]) == datetime(2026, 3, 1, 12, 30, tzinfo=UTC).timestamp()
    assert float(query["since"]) < float(query["until"]) <= time.time()
    failed = edt("logs", "jaaaaaaaa", "--since", "yesterday")
    assert failed.code == 2
    assert "--since 'yesterday' is no time" in failed.err
    assert "--search needs a text" in edt("logs", "jaaaaaaaa", "--since", "1h", "-f").err


def test_logs_of_one_rank_and_as_json(edt: Edt, service: FakeService) -> None:
    service.logs["jaaaaaaaa"] = ["[0] hello", "[1] [0] x", "plain"]
    assert edt("logs", "train", "--rank", "0").out == "hello\n"
    lines = edt("logs", "train", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"rank": "0", "text": "hello"},
        {"rank": "1", "text": "[0] x"},
        {"rank": None, "text": "plain"},
    ]


def test_results_become_a_file(
    edt: Edt, service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service.made = ["model/train/weights.pt", "log/launcher.log", "work/best\x1b.pt"]
    assert edt("results", "train").err == (
        "jaaaaaaaa: its results are in jaaaaaaaa-results.tar.gz, besides its logs\n"
        "  model/train/weights.pt  1.2 kB\n"
        "  work/best\ufffd.pt  1.2 kB\n"
    )
    assert Path("jaaaaaaaa-results.tar.gz").read_bytes() == b"\x1f\x8b results"
    shown = json.loads(edt("results", "train", "-o", "there.tar.gz", "--json").out)
    assert shown == {"job": "jaaaaaaaa", "file": "there.tar.gz"}
    assert edt("results", "train", "-o", "none/there.tar.gz").code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"jaaaaaaaa-results.tar.gz", "there.tar.gz"}


def test_the_newest_checkpoint_or_a_named_one_is_fetched(
    edt: Edt, service: FakeService, tmp_path: Path
) -> None:
    assert [line.split()[0] for line in edt("checkpoints", "train").out.splitlines()] == [
        "NAME", "step-10", "step-20",
    ]  # fmt: skip
    file = tmp_path / "there.tar.gz"
    for words, name in (((), "step-20"), (("--name", "step-10"), "step-10")):
        assert edt("checkpoints", "train", "-o", str(file), *words).code == 0
        assert file.read_bytes() == b"\x1f\x8b " + name.encode()
    assert edt("checkpoints", "train", "--name", "step-10").code == 2
    assert edt("checkpoints", "train", "--name", "step-30", "-o", str(file)).code == 1


def test_rm_deletes_jobs_with_their_files(edt: Edt, service: FakeService) -> None:
    assert edt("rm", "jaaaa", "jbbbbbbbb").err == "jaaaaaaaa, jbbbbbbbb deleted\n"
    deleted = [one.path for one in service.asked if one.method == "DELETE"]
    assert deleted == ["/jobs/jaaaaaaaa", "/jobs/jbbbbbbbb"]
    assert json.loads(edt("rm", "jaaaaaaaa", "--json").out) == {"deleted": ["jaaaaaaaa"]}


def test_nothing_is_padded_where_there_is_no_terminal(edt: Edt, service: FakeService, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert max(map(len, edt("top", "--once").out.splitlines())) < 400
