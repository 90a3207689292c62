from collections.abc import Iterable, Mapping

import pytest

from asking import Asking, submitted
from edt_launch.cluster.nvidia import Load, Nvml
from played import Player


def test_applications_of_a_group_with_the_figures_of_their_gpus(
    asking: Asking, player: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(_: Nvml, names: Iterable[str]) -> Mapping[str, Load]:
        return {name: Load(7809, 83.0) for name in names if name != "cpu2"}

    monkeypatch.setattr(Nvml, "loads", loads)
    told = submitted(asking.classic(), sigName="dli")
    other = submitted(asking.classic(), sigName="other")
    client = asking.conductor()
    place = f"/instances/{told['sigId']}/applications"
    assert client.get(f"{place}?state=RUNNING").json() == []
    player.start(told["id"], size=3)
    player.start(other["id"])
    (application,) = client.get(f"{place}?state=RUNNING").json()
    assert application["driver"] == {"id": told["submissionId"], "state": "RUNNING"}
    assert application["gpuslots"] == len(application["executors"]) == 3
    assert application["gpumemused"]["total"] == 2 * 7809
    assert application["gpudevutil"]["total"] == 166.0
    assert application["apprunduration"] == 2.5064
    assert client.get(f"{place}?state=FINISHED").json() == []
    assert len(client.get(place).json()) == 1
    assert asking.conductor("bob").get(place).json() == []
    assert len(asking.conductor("admin").get(place).json()) == 1


@pytest.mark.parametrize(
    "path", ["logs/passwd/download", "1-x/logs/stdout/download", "..%2f..%2fx/logs/stdout/download"]
)
def test_other_files_are_not_handed_out(asking: Asking, player: Player, path: str) -> None:
    told = submitted(asking.classic(), sigName="dli")
    player.start(told["id"])
    answer = asking.conductor().get(f"/instances/x/applications/{told['submissionId']}/{path}")
    assert answer.status_code in (400, 404)
    assert answer.text.startswith("Error 4")
