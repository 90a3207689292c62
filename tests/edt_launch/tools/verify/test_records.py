import json

from edt_launch.tools.verify.records import Record, first_difference, read
from edt_launch.tools.verify.schedules import Schedule
from handwritten import BIAS, BUFFER, GROWN, TWO, WEIGHT, run

DIGESTS = {
    "parameters": {"model.weight": "a"},
    "buffers": {},
    "optimizer": {"optimizer.lr": "b"},
    "loss": {},
    "values": {"epoch": "c"},
}


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(step, rank, size, **more):
    return {"step": step, "rank": rank, "size": size, **DIGESTS, **more}


def test_puts_the_records_of_all_workers_in_order(tmp_path):
    write(
        tmp_path / "record.7.jsonl",
        line(0, 0, 1, holds={"model": "Linear"}, reductions=["ring"]),
        line(1, 0, 1),
        line(2, 0, 2),
    )
    write(tmp_path / "record.5.jsonl", line(2, 1, 2))
    run = read("1 → 2 workers", GROWN, tmp_path)
    assert [(r.step, r.rank, r.size) for r in run.records] == [(0, 0, 1), (1, 0, 1), (2, 0, 2), (2, 1, 2)]
    assert run.records[0] == Record(0, 0, 1, DIGESTS)
    assert (run.steps, run.sizes, run.reductions, run.holds) == (2, (1, 2), ("ring",), {"model": "Linear"})


def test_a_step_that_was_redone_counts_once(tmp_path):
    redone = line(1, 0, 1, parameters={"model.weight": "z"})
    write(tmp_path / "record.7.jsonl", line(0, 0, 1), line(1, 0, 1), redone)
    run = read("1 worker", Schedule((1,)), tmp_path)
    assert run.coordinator[1].digests["parameters"] == {"model.weight": "z"}


def test_the_first_step_and_name_are_found():
    runs = [
        run(),
        run(TWO, changes=[(3, 0, *WEIGHT), (2, 0, *BUFFER), (2, 0, *BIAS), (2, 0, "loss", "step.loss")]),
    ]
    difference = first_difference(runs)
    assert (difference.reference, difference.run) == (runs[0], runs[1])
    assert (difference.step, difference.rank, difference.size) == (2, 0, 2)
    assert (difference.kind, difference.name) == BIAS
    assert difference.others == {"buffers": 1, "loss": 1}
