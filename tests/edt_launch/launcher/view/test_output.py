"""Lines of what processes print, and the files that they go to."""

import pytest

from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.view import output


def lines(data, *, size=None, now=0.0):
    reader = output.LineReader("stdout", 1)
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
    found = lines(b"x" * (3 * output.MAX_LINE) + b"\nnext\n", size=size)
    assert sum(map(len, found[:-1])) == 3 * output.MAX_LINE
    assert max(map(len, found)) <= output.MAX_LINE
    assert found[-1] == "next"


def test_logs_go_by_rank_and_remember_the_last_lines(tmp_path):
    paths = RunDir(tmp_path / "it's a folder")
    with paths.opened():
        logs = output.Logs(paths, print)
        for number in range(30):
            logs.write(output.Line(5, "stdout", f"line {number}"), "0")
        logs.write(output.Line(5, "stdout", "as another rank \udcff"), "1")
        logs.write(output.Line(None, "stderr", "own"), None)
        logs.flush()
        assert paths.rank_log("0").read_text() == "".join(f"line {number}\n" for number in range(30))
        assert paths.rank_log("1").read_text() == "as another rank ?\n"
        assert paths.own_log.read_text() == "own\n"
        assert len(logs.last_lines(5)) == output.LAST_LINES
        assert logs.last_lines(5)[-2] == "line 29"
        assert len(logs.last_lines(5, output.KEPT_LINES)) == 31
        assert logs.last_lines(None) == ("own",)
        assert logs.last_lines(6) == ()
        logs.begin()
        assert logs.last_lines(None) == ()
        logs.close()


def test_one_log_of_all_workers_has_each_line_once(tmp_path):
    paths = RunDir(tmp_path)
    with paths.opened():
        logs = output.Logs(paths, print, is_single=True)
        logs.write(output.Line(5, "stdout", "a"), "0")
        logs.write(output.Line(6, "stdout", "b", prefix="[default1]:"), "1")
        logs.write(output.Line(5, "stderr", "a peer is lost"), "0", is_hidden=True)
        logs.write(output.Line(5, "stderr", "in its own file", is_copied=True), "0", is_hidden=True)
        logs.write(output.Line(None, "stderr", "own"), None)
        logs.close()
    assert paths.job_log.read_text() == "[0] a\n[1] [default1]:b\n"
    assert paths.own_log.read_text() == "[0] a peer is lost\nown\n"
    assert logs.path_of("1") == paths.job_log
    assert sorted(path.name for path in paths.log.iterdir()) == ["edt-launch.log", "launcher.log"]
    assert logs.last_lines(5) == ("a", "a peer is lost", "in its own file")
