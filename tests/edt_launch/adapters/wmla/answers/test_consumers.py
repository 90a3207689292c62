from edt_launch.adapters.wmla.answers.consumers import Consumers
from edt_launch.service.database.records import ShareRecord


def test_a_users_consumer_is_the_node_above() -> None:
    tree = Consumers.of([ShareRecord("lab"), ShareRecord("vision", "lab"), ShareRecord("ann", "vision")])
    assert tree.above("ann") == "/-/lab/vision"
    assert tree.above("lab") == "/-"
    assert tree.above("nobody") == "/-"


def test_the_tree_is_told_from_any_node() -> None:
    tree = Consumers.of([ShareRecord("lab"), ShareRecord("ann", "lab")])
    ann = {"id": "ann", "pid": "lab", "childTreeDto": []}
    lab = {"id": "lab", "pid": "-", "childTreeDto": [ann]}
    assert tree.tree() == {"id": "-", "pid": "", "childTreeDto": [lab]}
    assert tree.tree("lab") == lab
    assert "ann" in tree
    assert "bob" not in tree
