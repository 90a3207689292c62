"""What users may rely on is what the package exports, no more and no less."""

import edt_hvd

PROMISED = {
    *("CoordinatorLostError", "DistributedOptimizer", "EdtError", "ElasticDataLoader", "GradientError"),
    *("Mean", "NonFiniteGradientWarning", "NotInitializedError", "StateError", "Step", "TorchState"),
    *("average", "barrier", "broadcast", "device", "elastic", "gather", "heartbeat", "init"),
    *("is_coordinator", "leave", "local_rank", "local_size", "rank", "report", "size"),
}


def test_exports_are_the_interface() -> None:
    assert set(edt_hvd.__all__) == PROMISED
    assert edt_hvd.__all__ == sorted(edt_hvd.__all__)
