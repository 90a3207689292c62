"""The picture of a job, from its events."""

from edt_launch.core.history.events import Progress
from edt_launch.tools.demo.plot import curve, draw


def progress_event(step, size, loss=None):
    return Progress(step, None, size, {} if loss is None else {"loss": loss})


def test_steps_that_were_done_again_count_once():
    events = [progress_event(5, 2, 1.0), progress_event(6, 2, 0.9), progress_event(5, 1, 1.1)]
    assert curve(events) == [progress_event(5, 1, 1.1), progress_event(6, 2, 0.9)]


def test_draws_a_png(tmp_path):
    points = [progress_event(1, 2, 2.0), progress_event(9, 4, 1.0)]
    picture = tmp_path / "a plot.png"
    draw(points, picture, "title")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture]
