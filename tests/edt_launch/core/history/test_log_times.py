from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.history.log_times import SAMPLE_INTERVAL, LogTimes, part
from edt_launch.core.run_dir import RunDir


def made(root: Path, now: float = 0.0) -> tuple[RunDir, LogTimes, list[str]]:
    paths, said = RunDir(root), list[str]()
    for folder in (paths.log, paths.run):
        folder.mkdir(parents=True)
    return paths, LogTimes(paths, said.append, now), said


def test_a_row_is_written_for_each_log_that_has_grown(tmp_path: Path) -> None:
    paths, times, _ = made(tmp_path, 990.0)
    log, other = paths.rank_log("0"), paths.rank_log("1")
    log.write_text("hello\n")
    other.touch()
    times.observe(1000.0)
    log.write_text("hello\nyou\n")
    times.observe(1000.0 + SAMPLE_INTERVAL - 1)
    times.observe(1000.0 + SAMPLE_INTERVAL)
    other.write_text("I\n")
    times.close(1012.0)
    assert paths.log_times.read_text().splitlines() == [
        "990.0 0 rank.0.log",
        "1000.0 6 rank.0.log",
        "1010.0 10 rank.0.log",
        "1010.0 0 rank.1.log",
        "1012.0 2 rank.1.log",
    ]


def test_only_logs_are_looked_at_whatever_the_job_does(tmp_path: Path) -> None:
    paths, times, said = made(tmp_path)
    (paths.log / "a\nb.log").write_text("x")
    (paths.log / "events.out").write_text("x")
    (paths.log / "link.log").symlink_to("/etc/passwd")
    times.observe(10.0)
    paths.log.rename(tmp_path / "away")
    times.observe(20.0)
    assert not paths.log_times.exists()
    paths.log.mkdir()
    paths.own_log.write_text("hello\n")
    paths.log_times.mkdir()
    times.close(30.0)
    (text,) = said
    assert "the job goes on without it" in text


PRINTED = st.lists(st.tuples(st.floats(0, 9), st.integers(1, 9)), max_size=20)


@given(PRINTED, st.none() | st.integers(0, 100), st.none() | st.integers(0, 100))
def test_all_lines_of_a_time_are_in_its_part(
    printed: list[tuple[float, int]], since: int | None, until: int | None
) -> None:
    rows, times, now, size = [b"0.0 0 a.log"] if printed else [], list[float](), 0.0, 0
    for pause, lines in printed:
        now += pause
        times += [now] * lines
        size += lines
        now += 1.0
        rows.append(f"{now} {size} a.log".encode())
    found = part(rows, "a.log", since, until)
    if not rows:
        assert found is None
        return
    assert found is not None
    inside = range(len(times))[slice(*found)]
    for at, time in enumerate(times):
        if (since is None or time >= since) and (until is None or time < until):
            assert at in inside
