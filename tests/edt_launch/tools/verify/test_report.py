import json

from edt_launch.tools.verify.causes import verdict
from edt_launch.tools.verify.report import WIDTH, as_data, describe
from edt_launch.tools.verify.traces import Finding, Parting
from handwritten import BIAS, BUFFER, GROWN, WEIGHT, run


def test_a_difference():
    changes = [(3, 1, *WEIGHT), (3, 1, *BIAS), (3, 1, *BUFFER)]
    result = verdict([run(), run(GROWN, changes=changes)], Finding(Parting.INPUT, "aten::add_"))
    lines = describe(result).splitlines()
    assert lines[:5] == [
        "The bits differ.",
        "  first         parameter model.0.weight, after step 3",
        "  between       1 worker and 1 → 2 workers, rank 1 of 2",
        "  also          1 parameter, 1 buffer",
        "  likely cause  state outside TorchState, or dependence on the rank",
    ]
    assert max(map(len, lines)) <= WIDTH
    data = json.loads(json.dumps(as_data(result)))
    assert data["cause"] == "state outside TorchState, or dependence on the rank"
    assert (data["difference"]["step"], data["difference"]["name"]) == (3, "model.0.weight")
