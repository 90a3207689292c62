"""From horovodrun's streams back to lines that know whose they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.run_dir import RunDir
from edt_launch.view.output import (
    DRIVER,
    KEPT_LINES,
    LAST_LINES,
    MAX_LINE,
    Demultiplexer,
    Line,
    Logs,
    Ranks,
    is_for_the_log,
)


def take_apart(data, *, stream="stdout", known=(0, 1, 2), size=None, now=0.0):
    demultiplexer = Demultiplexer(stream, known)
    size = size or len(data) or 1
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    lines = [line for piece in pieces for line in demultiplexer.feed(now, piece)]
    return [*lines, *demultiplexer.close()]


@pytest.mark.parametrize("size", [1, 3, 7, None])
def test_lines_know_their_worker_and_stream(size):
    data = "[0]<stdout>:one\n[12]<stderr>:zwölf\nhorovodrun's own\n[1]<stdout>:\n".encode()
    assert take_apart(data, size=size) == [
        Line(0, "stdout", "one"),
        Line(12, "stderr", "zwölf"),
        Line(None, "stdout", "horovodrun's own"),
        Line(1, "stdout", ""),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.text(st.characters(codec="utf-8", exclude_characters="\r\n[")))),
    st.data(),
)
def test_nothing_is_lost_wherever_a_read_ends(written, data):
    stream = "".join(f"[{worker}]<stdout>:{text}\n" for worker, text in written).encode()
    size = data.draw(st.integers(1, len(stream) + 1))
    assert take_apart(stream, size=size) == [Line(worker, "stdout", text) for worker, text in written]


def test_last_words_without_an_end_stay_with_their_worker():
    data = b"[0]<stdout>:last words[1]<stdout>:next\n[2]<stdout>:very last"
    assert take_apart(data) == [
        Line(0, "stdout", "last words"),
        Line(1, "stdout", "next"),
        Line(2, "stdout", "very last"),
    ]


def test_what_only_looks_like_a_prefix_is_text():
    data = b"[0]<stdout>:see [7]<stdout>: there\n[0]<stdout>:[1]<stdout>:nested\n[x]<stdout>:no\n"
    assert take_apart(data) == [
        Line(0, "stdout", "see [7]<stdout>: there"),
        Line(0, "stdout", "[1]<stdout>:nested"),
        Line(None, "stdout", "[x]<stdout>:no"),
    ]


def test_bytes_that_are_no_text_are_replaced():
    assert take_apart(b"[0]<stdout>:a\xffb\n\xc3") == [
        Line(0, "stdout", "a\N{REPLACEMENT CHARACTER}b"),
        Line(None, "stdout", "\N{REPLACEMENT CHARACTER}"),
    ]


@pytest.mark.parametrize("size", [1000, None])
def test_a_very_long_line_is_broken_and_stays_with_its_worker(size):
    lines = take_apart(b"[1]<stderr>:" + b"x" * (3 * MAX_LINE) + b"\n[0]<stdout>:next\n", size=size)
    assert {(line.worker, line.stream) for line in lines[:-1]} == {(1, "stderr")}
    assert sum(len(line.text) for line in lines[:-1]) == 3 * MAX_LINE
    assert max(len(line.text) for line in lines) <= MAX_LINE
    assert lines[-1] == Line(0, "stdout", "next")


def test_a_line_is_not_kept_until_it_ends():
    demultiplexer = Demultiplexer("stdout")
    assert list(demultiplexer.feed(0.0, b"[1]<stderr>:" + b"x" * MAX_LINE))
    assert list(demultiplexer.feed(0.0, b"yz\n")) == [Line(1, "stderr", "yz")]


def test_of_a_progress_bar_one_state_a_second_and_the_last_are_shown():
    demultiplexer = Demultiplexer("stdout")
    shown = []
    for tenth in range(25):
        shown += demultiplexer.feed(tenth / 10, b"[0]<stderr>:\r[0]<stderr>: %d%%" % tenth)
        shown += demultiplexer.feed(tenth / 10, b"\r")
    assert [line.text for line in shown] == [" 0%", " 10%", " 20%"]
    assert list(demultiplexer.feed(2.5, b"[0]<stderr>: 100%\n")) == [Line(0, "stderr", " 100%")]
    assert list(demultiplexer.close()) == []


def test_a_progress_bar_that_just_stops_shows_its_last_state():
    assert take_apart(b"[0]<stderr>:1%\r[0]<stderr>:2%\r") == [
        Line(0, "stderr", "1%"),
        Line(0, "stderr", "2%"),
    ]
    data = b"[0]<stderr>:1%\r[0]<stderr>:2%\r[0]<stderr>:\n"
    assert take_apart(data) == [Line(0, "stderr", "1%"), Line(0, "stderr", "2%")]


def test_lines_that_end_as_on_windows_are_whole():
    data = b"[0]<stdout>:a\r[0]<stdout>:\n[0]<stdout>:b\r[0]<stdout>:\n[0]<stdout>:\n"
    assert [line.text for line in take_apart(data)] == ["a", "b", ""]


def test_a_stream_of_one_worker_has_no_prefixes():
    demultiplexer = Demultiplexer("stderr", worker=DRIVER)
    lines = [*demultiplexer.feed(0.0, b"[0]<stdout>:mine\nlast"), *demultiplexer.close()]
    assert lines == [Line(DRIVER, "stderr", "[0]<stdout>:mine"), Line(DRIVER, "stderr", "last")]
    ranks = Ranks()
    ranks.observe({"event": "world", "ranks": {"0": 0}})
    assert ranks.label(DRIVER) == "driver"


class TestRanks:
    def world(self, ranks, **ranks_of):
        ranks.observe({"event": "world", "ranks": ranks_of["of"]})

    def test_follow_the_worlds(self):
        ranks = Ranks()
        assert ranks.label(3) == "w3"
        ranks.observe({"event": "started", "worker": 3, "rank": 0})
        ranks.observe({"event": "started", "worker": 4, "rank": 1})
        assert (ranks.label(3), ranks.label(4)) == ("0", "1")
        self.world(ranks, of={"3": 1, "4": 0})
        assert (ranks.label(3), ranks.label(4)) == ("1", "0")
        assert 3 in ranks
        assert 5 not in ranks

    def test_a_newcomer_gets_no_name_that_is_taken(self):
        ranks = Ranks()
        self.world(ranks, of={"1": 0})
        ranks.observe({"event": "started", "worker": 2, "rank": 0})
        assert ranks.label(2) == "w2"
        self.world(ranks, of={"1": 0, "2": 1})
        assert ranks.label(2) == "1"

    def test_who_leaves_keeps_its_name_unless_it_is_taken(self):
        ranks = Ranks()
        self.world(ranks, of={"0": 0, "1": 1, "2": 2})
        self.world(ranks, of={"1": 0})
        assert [ranks.label(worker) for worker in range(3)] == ["w0", "0", "2"]

    def test_the_dead_keep_theirs_for_their_last_lines(self):
        ranks = Ranks()
        self.world(ranks, of={"0": 0, "1": 1})
        ranks.observe({"event": "failed", "worker": 0})
        ranks.observe({"event": "started", "worker": 2, "rank": 0})
        self.world(ranks, of={"1": 0, "2": 1})
        assert [ranks.label(worker) for worker in range(3)] == ["0", "0", "1"]


def test_logs_go_by_rank_and_remember_the_last_lines(tmp_path):
    paths = RunDir(tmp_path / "it's a folder")
    with paths.opened():
        logs = Logs(paths, print)
        for number in range(30):
            logs.write(Line(5, "stdout", f"line {number}"), "0")
        logs.write(Line(5, "stdout", "as another rank \udcff"), "1")
        logs.write(Line(None, "stderr", "own"), None)
        logs.flush()
        assert paths.rank_log("0").read_text() == "".join(f"line {number}\n" for number in range(30))
        assert paths.rank_log("1").read_text() == "as another rank ?\n"
        assert paths.horovodrun_log.read_text() == "own\n"
        assert len(logs.last_lines(5)) == LAST_LINES
        assert logs.last_lines(5)[-2] == "line 29"
        assert len(logs.last_lines(5, KEPT_LINES)) == 31
        assert logs.last_lines(None) == ("own",)
        assert logs.last_lines(6) == ()
        logs.begin()
        assert logs.last_lines(None) == ()
        logs.close()


GLOO = "[2026-11-21 22:38:16.891042: E /b/operations.cc:712] [0]: Horovod background loop uncaught "
FORMING = "[2026-11-21 22:38:16.891042: E /b/operations.cc:682] [0]: Horovod could not be initialized: "


@pytest.mark.parametrize(
    "text, worker, expected",
    [
        (GLOO + "exception: [/b/gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:6", 0, True),
        (GLOO + "exception: [/b/gloo/transport/tcp/pair.cc:598] Connection closed by peer", None, False),
        (GLOO + "exception: bad_alloc", 0, False),
        ("see " + GLOO + "exception: [/b/gloo/x.cc:1] y", 0, False),
        ("Connection closed by peer", 0, False),
        (
            FORMING + "[enforce fail at /b/gloo/transport/tcp/address.cc:45] sizeof(impl_) == 136 vs 1",
            0,
            True,
        ),
        (FORMING + "[/b/gloo/transport/tcp/pair.cc:598] Connection closed by peer", 0, True),
        (FORMING + "[enforce fail at /b/gloo/context.cc:27] rank < size. 1 vs 1", 0, False),
    ],
)
def test_horovods_words_on_a_lost_peer_are_for_the_log_alone(text, worker, expected):
    assert is_for_the_log(Line(worker, "stderr", text)) == expected
