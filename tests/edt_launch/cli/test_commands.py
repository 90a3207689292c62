import io
import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from cli_service import EVAL, TRAIN, CliService
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.jobs.states import State, Wanted
from ended import Edt
from world import NOW

READING = (
    ("ps",), ("top", "--once"), ("show", "train"), ("show", "train", "--series"), ("why", "train"),
    ("logs", "train"), ("hosts",), ("checkpoints", "train"), ("shares",), ("users",), ("tokens", "list"),
    ("search", "ls"), ("search", "show", "find-rate"),
)  # fmt: skip


@pytest.mark.parametrize("words", READING)
def test_whatever_is_read_fits_and_has_json(edt: Edt, service: CliService, words: tuple[str, ...]) -> None:
    service.print("[0] hello")
    if words[0] == "search":
        service.add_search()
    plain, as_json = edt(*words), edt(*words, "--json")
    assert plain.code == as_json.code == 0
    assert plain.out
    assert all(len(line) <= 80 for line in plain.out.splitlines())
    assert "\x1b" not in plain.out
    assert isinstance(json.loads(as_json.out), dict)
    assert plain.err == as_json.err == ""


def test_ps_shows_sizes_and_why_jobs_wait_or_failed(edt: Edt, service: CliService) -> None:
    service.add("jcccccccc", state=State.FAILED, ended=NOW, failure="rank 2: oops")
    service.store.jobs.record({TRAIN: {"target": 4}})
    lines = edt("ps").out.splitlines()
    assert lines[0].split() == ["ID", "NAME", "OWNER", "STATE", "SIZE", "OF", "PROGRESS", "LEFT", "SINCE"]
    assert lines[1].split()[:8] == [TRAIN, "train", "admin", "running", "2→4", "1-4", "43%", "43s"]
    assert lines[2].split()[:6] == [EVAL, "eval", "bob", "queued", "0", "3-4"]
    assert lines[3] == "  ↳ waits for 3 devices at once: 2 are free"
    assert lines[5] == "  ↳ rank 2: oops"


@pytest.mark.parametrize(
    "words, found",
    [
        (("--state", "queued,paused"), [EVAL]),
        (("--mine", "--host", "node1"), [TRAIN]),
        (("--owner", "bob,ann", "--since", "1970-01-01T00:00Z"), [EVAL]),
        (("--since", "1h"), ["no such jobs; those that ended long ago: edt ps --all"]),
        (("--all", "--text", "nothing"), ["no such jobs"]),
    ],
)
def test_ps_lists_what_it_is_asked_for(
    edt: Edt, service: CliService, words: tuple[str, ...], found: list[str]
) -> None:
    quiet = ("-q",) if found[0] in (TRAIN, EVAL) else ()
    assert edt("ps", *words, *quiet).out.splitlines() == found


def test_what_jobs_print_does_not_steer_the_terminal(edt: Edt, service: CliService) -> None:
    service.store.jobs.change(TRAIN, name="\x1b[2Jevil\nname")
    assert all("\x1b" not in edt(*words).out for words in (("ps",), ("top", "--once"), ("show", TRAIN)))


def test_jobs_are_told_what_is_wanted(edt: Edt, service: CliService) -> None:
    ended = edt("pause", "train", EVAL)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines() == [
        f"{TRAIN} is running and is going to be paused",
        f"{EVAL} is queued and is going to be paused",
    ]
    assert [one["wanted"] for one in json.loads(edt("stop", "train", "--json").out)["jobs"]] == ["stop"]


def test_jobs_that_ended_long_ago_are_found_by_name_and_beginning(edt: Edt, service: CliService) -> None:
    service.add("joldoldol", name="once", state=State.SUCCEEDED, ended=NOW - 1e5)
    for text in ("once", "jold"):
        assert json.loads(edt("show", text, "--json").out)["id"] == "joldoldol"
    assert edt("show", "never").code == 6


@pytest.mark.parametrize(
    "words",
    [("stop", ""), ("drain", ""), ("shares", "", "--policy", "fair"), ("users", "remove", "")],
)
def test_an_empty_name_is_a_mistake(edt: Edt, service: CliService, words: tuple[str, ...]) -> None:
    ended = edt(*words)
    assert ended.code == 2
    assert "''" in ended.err or "empty" in ended.err


def test_a_mistyped_name_among_several_changes_nothing(edt: Edt, service: CliService) -> None:
    assert edt("stop", "train", "nosuch").code == 6
    assert service.store.jobs.get(TRAIN).wanted is Wanted.RUN


def test_set_changes_only_what_is_given(edt: Edt, service: CliService) -> None:
    before = service.store.jobs.get(TRAIN)
    ended = edt("set", "train", "--max", "8", "--weight", "3")
    assert ended.out.splitlines()[:2] == [f"{TRAIN}: max was 4, is 8", f"{TRAIN}: weight was 1.0, is 3.0"]
    assert service.store.jobs.get(TRAIN) == replace(before, max=8, weight=3.0)
    assert edt("set", "train", "--max", "8").out.splitlines()[0] == f"{TRAIN}: max is 8 already"
    said = edt("set", "train", "--tags", "lr-3, best", "--comment", "").out.splitlines()
    assert said == [f"{TRAIN}: tags was empty, is best, lr-3", f"{TRAIN}: comment is empty already"]
    assert edt("set", "train").code == 2


def test_drain_and_undo(edt: Edt, service: CliService) -> None:
    service.store.jobs.record({TRAIN: {"can_save": False, "running_since": NOW - 754}})
    dry = edt("drain", "node1", "--dry-run")
    assert dry.out
    assert "cannot save its work, and would stay until it ends" in " ".join(dry.err.split())
    assert edt("drain", "node1").err.splitlines()[0] == "node1 draining"
    assert edt("drain", "--undo", "node1").err == "node1 up\n"
    service.log_on("ann")
    assert edt("drain", "node1").code == 5


def test_a_share_is_set_with_what_is_given(edt: Edt, service: CliService) -> None:
    assert edt("shares", "ann", "--weight", "3", "--limit", "none", "--keeps").code == 0
    assert share(service, "ann") == ShareRecord("ann", weight=3.0, lends=False)
    lines = edt("shares", "ann", "--budget", "500").out.splitlines()
    assert lines[0].split()[-2:] == ["USED", "BUDGET"]
    assert share(service, "ann").budget == 500.0
    assert edt("shares", "ann", "--budget", "much").code == 2


def test_a_node_of_the_tree_is_removed(edt: Edt, service: CliService) -> None:
    edt("shares", "lab", "--weight", "3")
    assert edt("shares", "lab", "--remove", "--dry-run").out == "no job would change now\n"
    assert share(service, "lab").weight == 3.0
    assert json.loads(edt("shares", "lab", "--remove", "--json").out) == {"removed": "lab"}
    assert "lab" not in [one.name for one in service.store.shares.all()]


def share(service: CliService, name: str) -> ShareRecord:
    (found,) = [one for one in service.store.shares.all() if one.name == name]
    return found


@pytest.mark.parametrize("words", [("--weight", "3"), ("nobody",), ("ann", "--remove", "--weight", "3")])
def test_shares_that_make_no_sense(edt: Edt, service: CliService, words: tuple[str, ...]) -> None:
    assert edt("shares", *words).code == 2
    assert {method for method, _ in service.asked} <= {"GET"}


def test_only_the_token_goes_to_standard_output(edt: Edt, service: CliService) -> None:
    accounts = service.store.accounts
    for words in (("users", "add", "carl"), ("tokens", "add", "--name", "laptop", "--lasts", "30d")):
        assert re.fullmatch(r"edt_\S+\n", edt(*words).out)
    laptop, other = (json.loads(edt("tokens", "add", "--name", n, "--json").out) for n in ("laptop", "b"))
    service.log_on(laptop["token"])
    child = json.loads(edt("tokens", "add", "--json").out)["id"]
    assert edt("tokens", "add", "--lasts", "soon").code == 2
    assert edt("tokens", "revoke", laptop["id"], "--only").code == 0
    service.log_on("admin")
    valid = {one.id for one in accounts.tokens("admin")}
    assert (laptop["id"] in valid, child in valid) == (False, True)
    assert edt("tokens", "revoke", other["id"]).code == 0
    assert other["id"] not in {one.id for one in accounts.tokens("admin")}
    assert edt("users", "remove", "carl").code == 0
    assert "carl" not in [user.name for user in accounts.users()]


def test_a_password_comes_from_standard_input_or_a_terminal(
    edt: Edt, service: CliService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    assert edt("users", "password", "bob", "--password-stdin").code == 0
    assert service.store.accounts.tokens("bob")
    monkeypatch.setattr("sys.stdin", io.StringIO("battery staple\n"))
    told = edt("users", "password", "bob", "--password-stdin", "--revoke-tokens")
    assert "tokens" in told.err
    assert service.store.accounts.tokens("bob") == []
    refused = edt("users", "password", "bob")
    assert refused.code != 0
    assert "--password-stdin" in refused.err


def test_logs_that_are_searched_are_asked_for_until_the_end(edt: Edt, service: CliService) -> None:
    lines = [f"[0] {'an error' if number % 500 else 'fine'}" for number in range(1200)]
    service.print(*lines)
    found = edt("logs", TRAIN, "--search", "ERROR").out.splitlines()
    assert found == [line for line in lines if "error" in line]
    assert len([target for _, target in service.asked if "/search" in target]) > 1
    failed = edt("logs", TRAIN, "--level", "error", "-f")
    assert (failed.code, "--search needs a text" in failed.err) == (2, True)


def test_logs_of_one_rank_and_as_json(edt: Edt, service: CliService) -> None:
    service.print("[0] hello", "[1] [0] x", "plain")
    (service.files(TRAIN).output.log / "rank.0.log").write_text("hello\n")
    assert edt("logs", "train", "--rank", "0").out == "hello\n"
    lines = edt("logs", "train", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"rank": "0", "text": "hello"},
        {"rank": "1", "text": "[0] x"},
        {"rank": None, "text": "plain"},
    ]


def test_results_become_a_file(
    edt: Edt, service: CliService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (service.files(TRAIN).train / "weights.pt").write_bytes(b"w" * 1234)
    (service.files(TRAIN).code / "best\x1b.pt").write_bytes(b"w" * 1234)
    assert edt("results", "train").err == (
        f"{TRAIN}: its results are in {TRAIN}-results.tar.gz, besides its logs\n"
        "  model/train/weights.pt  1.2 kB\n"
        "  work/best\ufffd.pt  1.2 kB\n"
    )
    with tarfile.open(f"{TRAIN}-results.tar.gz") as archive:
        assert [one.size for one in archive if one.name.endswith("weights.pt")] == [1234]
    shown = json.loads(edt("results", "train", "-o", "there.tar.gz", "--json").out)
    assert shown == {"job": TRAIN, "file": "there.tar.gz"}
    assert edt("results", "train", "-o", "none/there.tar.gz").code == 2
    assert {path.name for path in folder.iterdir()} == {f"{TRAIN}-results.tar.gz", "there.tar.gz"}


def test_the_newest_checkpoint_or_a_named_one_is_fetched(
    edt: Edt, service: CliService, tmp_path: Path
) -> None:
    older, newer = names = [f"step-{step:08}" for step in (10, 20)]
    for name in names:
        (service.files(TRAIN).output.checkpoint / name).mkdir()
        (service.files(TRAIN).output.checkpoint / name / "state").touch()
    assert [line.split()[0] for line in edt("checkpoints", "train").out.splitlines()] == ["NAME", *names]
    file = tmp_path / "there.tar.gz"
    for words, name in (((), newer), (("--name", older), older)):
        assert edt("checkpoints", "train", "-o", str(file), *words).code == 0
        with tarfile.open(file) as archive:
            assert any(name in member for member in archive.getnames())
    assert edt("checkpoints", "train", "--name", older).code == 2
    assert edt("checkpoints", "train", "--name", "step-00000030", "-o", str(file)).code == 1


def test_rm_deletes_jobs_with_their_files(edt: Edt, service: CliService) -> None:
    service.go(TRAIN, State.SUCCEEDED)
    service.go(EVAL, State.STOPPED)
    assert edt("rm", "jaaaa", EVAL).err == f"{TRAIN}, {EVAL} deleted\n"
    assert service.store.jobs.ids() == frozenset()
    assert not service.files(TRAIN).root.exists()
    service.add(TRAIN, state=State.FAILED, ended=NOW)
    assert json.loads(edt("rm", TRAIN, "--json").out) == {"deleted": [TRAIN]}
