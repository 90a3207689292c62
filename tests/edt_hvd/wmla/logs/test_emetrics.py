import json
from pathlib import Path

from edt_hvd.wmla import EMetrics


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "evaluation-metrics.txt").read_text().splitlines()]


def test_a_sub_id_collects_test_metrics(job: Path) -> None:
    for step in range(2):
        with EMetrics.open("trial-4") as recorder:
            recorder.record(EMetrics.TRAIN_GROUP, step, {"loss": 9.0})
            recorder.record(EMetrics.TEST_GROUP, step, {"loss": float(step)})
    assert lines(job / "log")[0]["meta"]["subid"] == "trial-4"  # type: ignore[index]
    found = json.loads((job / "val_dict_list.json").read_text())
    assert found == [{"steps": 0, "loss": 0.0}, {"steps": 1, "loss": 1.0}]
