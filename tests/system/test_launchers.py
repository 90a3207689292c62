"""One script under python, mpirun, horovodrun and edt-launch."""

import os
import re
import sys
from pathlib import Path

import pytest
import torch

from harness import BIN, MPI_ENVIRONMENT, MPIRUN, PROGRAMS, TRACED, ElasticJob, Undisturbed, run
from tiers import full

LAUNCHERS = {
    "mpirun": [*MPIRUN, "2", sys.executable],
    "horovodrun-gloo": [BIN / "horovodrun", "--gloo", "-np", "2", sys.executable],
    "edt-launch": [BIN / "edt-launch", "--min-np", "2", "--max-np", "2"],
}
ENVIRONMENT = MPI_ENVIRONMENT | {"PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    "launcher, reduction", [("mpirun", "exact"), full("mpirun", "ring"), full("horovodrun-gloo", "exact")]
)
def test_fixed_size_launchers_train_the_same_model(
    launcher: str, reduction: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    environment = ENVIRONMENT if launcher == "mpirun" else {"PATH": ENVIRONMENT["PATH"]}
    printed = run(
        *LAUNCHERS[launcher], TRACED, tmp_path, "--epochs", 2, "--reduction", reduction, **environment
    )
    assert printed.count("trained") == 1
    found = torch.load(tmp_path / "final.pt")
    assert found["size"] == 2.0
    if reduction == "exact":
        undisturbed.check_final(tmp_path)
    else:
        expected = undisturbed.losses[: len(found["losses"])]
        torch.testing.assert_close(found["losses"], expected, rtol=1e-4, atol=1e-5)


COLLECTIVES = """
import os
import threading

import edt_hvd

edt_hvd.init()


class Broken:
    def __reduce__(self):
        return int, ("no number",)


@edt_hvd.elastic
def communicate(state):
    edt_hvd.barrier()
    found = edt_hvd.gather({"rank": edt_hvd.rank(), "text": "x" * 1000 * edt_hvd.rank()})
    assert [each["rank"] for each in found] == list(range(edt_hvd.size())), found
    assert [len(each["text"]) for each in found] == [1000 * rank for rank in range(edt_hvd.size())]
    assert edt_hvd.broadcast(edt_hvd.rank()) == 0
    assert edt_hvd.broadcast([edt_hvd.rank()], root=1) == [1]
    is_first = edt_hvd.rank() == 0
    lock = None if is_first else threading.Lock()
    refused = {
        "the value of worker 1, a lock cannot be pickled: ": lambda: edt_hvd.broadcast(lock, root=1),
        "edt_hvd.gather(): the value of worker 1, a lock cannot be pickled: ": lambda: edt_hvd.gather(lock),
        "the value of worker 0 cannot be unpickled: ValueError: ": lambda: edt_hvd.gather(Broken()),
        "root=0 on rank 0, root=1 on rank 1": lambda: edt_hvd.broadcast(1, root=int(not is_first)),
        "edt_hvd.gather() on rank 0, edt_hvd.barrier() on rank 1": (
            lambda: edt_hvd.gather(1) if is_first else edt_hvd.barrier()
        ),
        "edt_hvd.average() on rank 0, edt_hvd.broadcast() on rank 1": (
            lambda: edt_hvd.average(1.0) if is_first else edt_hvd.broadcast(1)
        ),
    }
    for words, call in refused.items():
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"not refused: {words}")
    edt_hvd.barrier()
    print(f"passed on {edt_hvd.size()}", flush=True)


if "EDT_COORDINATOR" in os.environ:  # workers may join
    try:
        edt_hvd.gather(1)
    except RuntimeError:
        communicate(edt_hvd.TorchState())
else:
    communicate.__wrapped__(None)
"""


@pytest.mark.parametrize("launcher", [full("mpirun"), full("horovodrun-gloo"), "edt-launch"])
def test_values_are_gathered_and_broadcast(launcher: str, tmp_path: Path) -> None:
    script = tmp_path / "collectives.py"
    script.write_text(COLLECTIVES)
    environment = ENVIRONMENT if launcher == "mpirun" else {"PATH": ENVIRONMENT["PATH"]}
    printed = run("env", "-C", tmp_path, *LAUNCHERS[launcher], script, **environment)
    assert printed.count("passed on 2") == 2


def test_a_horovod_script_is_resized_unchanged(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(PROGRAMS / "horovod_elastic.py", job.results)
    for size in (2, 3, 1):
        job.allocate(size)
        job.until_size(size)
        job.until(lambda: job.events("resumed") or job.size() == 2)
    assert job.end() == 0
    found = re.search(r"resets \[(.*)\] replicas (\d+)", job.stdout)
    assert found, job.stdout
    assert found.groups() == ("3, 1", "1")
    assert job.survivors() == []
