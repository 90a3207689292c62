import pytest

from edt_launch.cluster.ray.joining import explain

MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.12.1
This process on node 10.0.0.1 was started with:
    Ray: 2.61.0
    Python: 3.11.4
"""


def test_a_token_that_is_refused_is_the_cause_of_a_failure_to_connect() -> None:
    error = ConnectionError("Failed to connect to Ray cluster at h:1")
    error.__cause__ = RuntimeError("Last connection error: AuthenticationError: RPC error: InvalidAuthToken")
    for address in ("h:1", "auto"):
        assert explain(address, error).startswith(f"--ray {address}: the cluster wants a token")


@pytest.mark.parametrize(
    "address, error, sentence",
    [
        (
            "h:1",
            RuntimeError(MISMATCH),
            "--ray h:1: the cluster has Ray 2.60.0 with Python 3.12.1, this environment Ray 2.61.0",
        ),
        ("h:1", RuntimeError("Unauthenticated: Invalid auth token"), "--ray h:1: the cluster wants a token"),
        ("auto", ConnectionError("x"), "--ray auto: no Ray cluster runs on this machine: start one with"),
        ("h:1", ConnectionRefusedError(111, "Connection refused"), "--ray h:1: nothing answers there"),
        ("ray://h:1", OSError("x"), "--ray ray://h:1: name the cluster's head"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_explained(address: str, error: Exception, sentence: str) -> None:
    assert explain(address, error).startswith(sentence)
