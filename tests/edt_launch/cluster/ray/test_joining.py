from edt_launch.cluster.ray.joining import explain


def test_a_token_that_is_refused_is_the_cause_of_a_failure_to_connect() -> None:
    error = ConnectionError("Failed to connect to Ray cluster at h:1")
    error.__cause__ = RuntimeError("Last connection error: AuthenticationError: RPC error: InvalidAuthToken")
    for address in ("h:1", "auto"):
        assert explain(address, error).startswith(f"--ray {address}: the cluster wants a token")
