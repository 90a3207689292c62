from math import isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.history.events import Begun, Progress, Restarting, Resumed, Usage, World
from edt_launch.service.files.series import Series


def progress(time: float, step: int, size: int = 1, **values: object) -> Progress:
    return Progress(step, None, size, values, time=time)  # type: ignore[arg-type]


def test_progress_becomes_columns() -> None:
    series = Series(["accuracy"])
    for event in (
        progress(1.0, 10, loss=0.5),
        progress(3.0, 30, accuracy=0.1),
        progress(4.0, 40, 2, loss=nan),
        progress(5.0, 70, 2, loss=0.25, word="x", flag=True),
    ):
        series.observe(event)
    columns = series.columns()
    assert columns["time"] == [1.0, 3.0, 4.0, 5.0]
    assert columns["step"] == [10, 30, 40, 70]
    assert columns["size"] == [1, 1, 2, 2]
    assert columns["loss"] == columns["values"]["loss"] == [0.5, None, None, 0.25]
    assert columns["values"]["accuracy"] == [None, 0.1, None, None]
    assert columns["gaps"] == {"loss": [2], "accuracy": []}
    assert columns["throughput"] == [None, 10.0, None, 30.0]
    assert columns["names"] == ["accuracy", "loss"]
    assert columns["about"]["loss"] == {"lowest": 0.25, "highest": 0.5, "last": 0.25, "missing": 1}


def test_what_hosts_measure_is_a_value_of_the_next_report() -> None:
    series = Series(["system/memory GiB", "system/GPU %"])
    for event in (
        Usage(2.0, 2**31, None, None, None, time=0.5),
        progress(1.0, 10),
        progress(2.0, 20),
        Usage(2.0, 2**30, 87.5, 2**30, 250.0, time=2.5),
        progress(3.0, 30),
    ):
        series.observe(event)
    columns = series.columns()
    assert columns["values"]["system/memory GiB"] == [2.0, None, 1.0]
    assert columns["values"]["system/GPU %"] == [None, None, 87.5]


def test_training_time_leaves_out_pauses() -> None:
    series = Series()
    for event in (
        progress(1.0, 1),
        World(2, 4, 2, reason="grown", time=2.0),
        Resumed(2, 2, 4, 0.5, {"transfer": 0.1}, time=3.0),
        progress(3.0, 2, 4),
        Restarting("a worker has died", 0.0, 1, 3, True, time=4.0),
        progress(13.0, 2, 3),
        progress(14.0, 3, 3),
        Begun(1, 1.0, 1, 4, time=20.0),
        progress(30.0, 4, 3),
    ):
        series.observe(event)
    columns = series.columns()
    assert columns["training"] == [0.0, 1.5, 1.5, 2.5, 2.5]
    assert columns["throughput"] == [None, None, None, 1.0, None]
    told = [(one["start"], one["end"], one["from"], one["to"], one["reason"]) for one in columns["pauses"]]
    assert told == [
        (2.5, 3.0, 2, 4, "grown"),
        (3.0, 13.0, None, 3, "a worker has died"),
        (14.0, 30.0, None, 3, "started again"),
    ]
    assert columns["pauses"][0]["phases"] == {"transfer": 0.1}
    assert columns["pauses"][0]["step"] == 1


@given(
    st.lists(st.one_of(st.none(), st.just(nan), st.floats(-100, 100)), min_size=1, max_size=300),
    st.integers(1, 40),
)
def test_thinning_keeps_the_extremes_the_ends_and_the_bound(values: list[float | None], most: int) -> None:
    series = Series(most=most)
    for at, value in enumerate(values):
        series.observe(progress(float(at), at, **({} if value is None else {"loss": value})))
    columns = series.columns()
    assert len(columns["time"]) <= max(most, 9)
    assert columns["time"] == sorted(set(columns["time"]))
    assert (columns["time"][0], columns["time"][-1]) == (0.0, len(values) - 1.0)
    kept_values = [values[int(time)] for time in columns["time"]]
    assert columns["loss"] == [None if value is None or isnan(value) else value for value in kept_values]
    nans = {at for at, value in enumerate(kept_values) if value is not None and isnan(value)}
    assert nans.issuperset(columns["gaps"]["loss"])
    known = [value for value in values if value is not None and not isnan(value)]
    if known:
        kept = [loss for loss in columns["loss"] if loss is not None]
        assert (min(kept), max(kept)) == (min(known), max(known))
