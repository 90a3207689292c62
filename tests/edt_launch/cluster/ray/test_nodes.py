from typing import Any

from edt_launch.cluster.ray.nodes import GPU, RayNode, names_of, read


def node(id_: str, name: str = "", host: str = "m", alive: bool = True, **resources: float) -> dict[str, Any]:
    named = name or "10.0.0.1"
    return {
        "NodeID": id_,
        "Alive": alive,
        "NodeName": named,
        "NodeManagerHostname": host,
        "NodeManagerAddress": "10.0.0.1",
        "Resources": {"memory": 1e9, **resources},
    }


def test_nodes_of_one_machine_are_told_apart_and_keep_their_names() -> None:
    first = names_of({}, [node("bbbbbbbb")])
    assert first == {"bbbbbbbb": "m"}
    both = names_of(first, [node("aaaaaaaa"), node("bbbbbbbb")])
    assert both == {"bbbbbbbb": "m", "aaaaaaaa": "m-aaaaaa"}
    assert names_of(both, [node("aaaaaaaa")]) == {"aaaaaaaa": "m-aaaaaa"}


def test_nodes_have_what_is_free_of_them_and_whether_they_are_about_to_go() -> None:
    listed = [node("a", CPU=4, GPU=2), node("b", host="n", CPU=4), node("c", host="o", GPU=1)]
    names = names_of({}, listed)
    # Ray leaves out of the available resources those of which nothing is left.
    available = {"a": {"GPU": 1.0, "CPU": 4.0}, "b": {"CPU": 4.0}, "c": {"memory": 1.0}}
    assert read(listed, available, ["c"], names, GPU) == (
        RayNode("a", "m", "10.0.0.1", 2, 1),
        RayNode("b", "n", "10.0.0.1", 0, 0),
        RayNode("c", "o", "10.0.0.1", 1, 0, is_draining=True),
    )
