"""Lines of what processes print, and the files that they go to."""

import pytest

from edt_launch.core.history.events import Started, World
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.view.output import (
    KEPT_LINES,
    LAST_LINES,
    MAX_LINE,
    Line,
    LineReader,
    Logs,
    Ranks,
    is_for_the_log,
)


def lines(data, *, size=None, now=0.0):
    reader = LineReader("stdout", 1)
    size = size or len(data) or 1
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [line for piece in pieces for line in reader.feed(now, piece)]
    found += reader.close()
    assert {(line.worker, line.stream) for line in found} <= {(1, "stdout")}
    return [line.text for line in found]


@pytest.mark.parametrize("size", [1, 3, 7, None])
def test_lines_are_whole(size):
    assert lines("one\nzwölf\n\nlast words".encode(), size=size) == ["one", "zwölf", "", "last words"]


@pytest.mark.parametrize("size", [1000, None])
def test_a_very_long_line_is_broken(size):
    found = lines(b"x" * (3 * MAX_LINE) + b"\nnext\n", size=size)
    assert sum(map(len, found[:-1])) == 3 * MAX_LINE
    assert max(map(len, found)) <= MAX_LINE
    assert found[-1] == "next"


def test_of_a_progress_bar_one_state_a_second_and_the_last_are_shown():
    reader = LineReader("stderr", 0)
    shown = []
    for tenth in range(25):
        shown += reader.feed(tenth / 10, b"\r %d%%" % tenth)
        shown += reader.feed(tenth / 10, b"\r")
    assert [line.text for line in shown] == [" 0%", " 10%", " 20%"]
    assert list(reader.feed(2.5, b" 100%\n")) == [Line(0, "stderr", " 100%")]
    assert list(reader.close()) == []


class TestRanks:
    def world(self, ranks, of):
        ranks.observe(World(1, len(of), None, of))

    def test_follow_the_worlds(self):
        ranks = Ranks()
        assert ranks.label(3) == "w3"
        ranks.observe(Started(3, "h", 0, None, 0))
        ranks.observe(Started(4, "h", 0, None, 1))
        assert (ranks.label(3), ranks.label(4)) == ("0", "1")
        self.world(ranks, of={3: 1, 4: 0})
        assert (ranks.label(3), ranks.label(4)) == ("1", "0")
        assert 3 in ranks
        assert 5 not in ranks


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
        assert paths.own_log.read_text() == "own\n"
        assert len(logs.last_lines(5)) == LAST_LINES
        assert logs.last_lines(5)[-2] == "line 29"
        assert len(logs.last_lines(5, KEPT_LINES)) == 31
        assert logs.last_lines(None) == ("own",)
        assert logs.last_lines(6) == ()
        logs.begin()
        assert logs.last_lines(None) == ()
        logs.close()


def test_one_log_of_all_workers_has_each_line_once(tmp_path):
    paths = RunDir(tmp_path)
    with paths.opened():
        logs = Logs(paths, print, is_single=True)
        logs.write(Line(5, "stdout", "a"), "0")
        logs.write(Line(6, "stdout", "b", prefix="[default1]:"), "1")
        logs.write(Line(5, "stderr", "a peer is lost"), "0", is_hidden=True)
        logs.write(Line(5, "stderr", "in its own file", is_copied=True), "0", is_hidden=True)
        logs.write(Line(None, "stderr", "own"), None)
        logs.close()
    assert paths.job_log.read_text() == "[0] a\n[1] [default1]:b\n"
    assert paths.own_log.read_text() == "[0] a peer is lost\nown\n"
    assert logs.path_of("1") == paths.job_log
    assert sorted(path.name for path in paths.log.iterdir()) == ["edt-launch.log", "launcher.log"]
    assert logs.last_lines(5) == ("a", "a peer is lost", "in its own file")


GLOO = "[2026-11-21 22:38:16.891042: E /b/operations.cc:712] [0]: Horovod background loop uncaught "
FORMING = "[2026-11-21 22:38:16.891042: E /b/operations.cc:682] [0]: Horovod could not be initialized: "


@pytest.mark.parametrize(
    "text, worker, expected",
    [
        (GLOO + "exception: [/b/gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:6", 0, True),
        (GLOO + "exception: bad_alloc", 0, False),
        (
            FORMING + "[enforce fail at /b/gloo/transport/tcp/address.cc:45] sizeof(impl_) == 136 vs 1",
            0,
            True,
        ),
    ],
)
def test_horovods_words_on_a_lost_peer_are_for_the_log_alone(text, worker, expected):
    assert is_for_the_log(Line(worker, "stderr", text)) == expected
