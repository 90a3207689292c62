import json

from edt_launch.tools.verify.records import Operator, Record, read
from edt_launch.tools.verify.schedules import Schedule

DIGESTS = {
    "parameters": {"model.weight": "a"},
    "buffers": {},
    "optimizer": {"optimizer.lr": "b"},
    "loss": {},
    "values": {"epoch": "c"},
}
GROWN = Schedule((1, 2), (1,))


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


def test_an_empty_folder_is_a_run_without_steps(tmp_path):
    run = read("1 worker", Schedule((1,)), tmp_path)
    assert (run.records, run.steps, run.sizes) == ((), 0, ())


def test_reads_traces(tmp_path):
    common = {"rank": 1, "inputs": "i", "outputs": "o"}
    of_batch = {"epoch": 2, "position": 8, "phase": "forward"}
    write(
        tmp_path / "operators.7.jsonl",
        common | of_batch | {"operator": "aten::mm", "random": False, "reads": ["model.weight"]},
        common | {"phase": "update", "operator": "aten::normal_", "random": True, "reads": []},
    )
    assert read("1 worker", Schedule((1,)), tmp_path).operators == (
        Operator(1, (2, 8), "forward", "aten::mm", "i", "o", reads=("model.weight",)),
        Operator(1, None, "update", "aten::normal_", "i", "o", is_random=True),
    )
