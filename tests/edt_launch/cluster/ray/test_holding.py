import pytest

from edt_launch.cluster.ray.holding import IDLE_LIMIT, Decision, Device, Memory, decide
from edt_launch.cluster.ray.nodes import RayNode


def node(name: str, total: int, free: int | None = None, draining: bool = False) -> RayNode:
    return RayNode(name, name, "10.0.0.1", total, total if free is None else free, draining)


def devices(node: str, *names: str) -> set[Device]:
    return {Device(node, name) for name in names}


def decided(
    nodes: list[RayNode], held: set[Device], wanted: int, promised: dict[str, int] | None = None
) -> Decision:
    """A decision about devices that are all in use."""
    return decide(0.0, nodes, held, wanted, held, promised)[0]


def test_as_many_devices_are_held_as_jobs_could_use_of_as_few_nodes_as_may_be() -> None:
    nodes = [node("a", 2), node("b", 4), node("c", 4, free=3)]
    assert decided(nodes, set(), 3).hold == {"b": 3}
    assert decided(nodes, set(), 5).hold == {"b": 4, "c": 1}
    assert decided(nodes, devices("c", "0"), 3).hold == {"c": 2}
    assert decided(nodes, set(), 0) == Decision()


def test_devices_that_are_just_being_held_are_not_asked_for_again() -> None:
    nodes = [node("a", 4)]
    assert decided(nodes, set(), 4, {"a": 3}).hold == {"a": 1}
    assert decided(nodes, set(), 3, {"a": 3}) == Decision()


def test_nothing_is_held_of_a_node_that_is_about_to_go() -> None:
    nodes = [node("a", 2, draining=True), node("b", 2)]
    assert decided(nodes, set(), 3) == Decision({"b": 2}, frozenset(), 1, 3)


@pytest.mark.parametrize(
    "nodes, held, wanted, lacking, asked",
    [
        ([], set(), 3, 3, 3),
        ([node("a", 4, free=0)], devices("a", "0"), 3, 2, 3 + 3),  # others use three
        ([node("a", 4, free=3)], devices("a", "0"), 3, 0, 0),
        ([node("a", 2, free=0)], devices("a", "0", "1"), 2, 0, 0),
        ([], set(), 0, 0, 0),
    ],
)
def test_the_cluster_is_asked_for_what_others_use_and_what_jobs_could_use(
    nodes: list[RayNode], held: set[Device], wanted: int, lacking: int, asked: int
) -> None:
    decision = decided(nodes, held, wanted)
    assert (decision.lacking, decision.request) == (lacking, asked)


def test_what_is_not_used_for_five_minutes_is_given_back() -> None:
    nodes, held = [node("a", 2, free=0)], devices("a", "0", "1")
    decision, memory = decide(0.0, nodes, held, 0, devices("a", "0"))
    assert decision == Decision()
    decision, memory = decide(IDLE_LIMIT - 1, nodes, held, 0, devices("a", "0"), memory=memory)
    assert not decision.release
    decision, memory = decide(IDLE_LIMIT, nodes, held, 0, devices("a", "0"), memory=memory)
    assert decision.release == devices("a", "1")
    assert memory == Memory()


def test_what_jobs_could_use_is_kept_and_the_emptier_node_goes_first() -> None:
    nodes = [node("a", 2, free=0), node("b", 2, free=1)]
    held = devices("a", "0", "1") | devices("b", "0")
    memory = Memory(dict.fromkeys(held, 0.0))
    decision, _ = decide(IDLE_LIMIT, nodes, held, 2, memory=memory)
    assert decision.release == devices("b", "0")
    decision, _ = decide(IDLE_LIMIT, nodes, held, 3, memory=memory)
    assert not decision.release


def test_a_node_that_is_about_to_go_or_gone_is_given_back_as_soon_as_it_is_not_used() -> None:
    nodes, held = [node("a", 2, free=0, draining=True)], devices("a", "0", "1") | devices("gone", "0")
    decision, _ = decide(0.0, nodes, held, 0, devices("a", "0"))
    assert decision.release == devices("a", "1") | devices("gone", "0")
