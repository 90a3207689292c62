"""What a GPU check runs: its parts in their order, each with its command and its limit."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
SET_UP = "set-up"


@dataclass(frozen=True)
class Part:
    """One part of the check.

    Attributes:
        name: short; its log is ``<name>.log``.
        why: what it shows.
        command: to be run in the repository's root; exit code 0 is success.
        limit: seconds after which it is ended.
        needs: names of earlier parts without whose success it is not run.
        needs_gpu: whether it shows anything only on a GPU.
        refused: a pattern that its output must not contain, whatever the exit code.
    """

    name: str
    why: str
    command: tuple[str, ...]
    limit: float
    needs: tuple[str, ...] = (SET_UP,)
    needs_gpu: bool = True
    refused: str | None = None


LOSS = ("--width", 1024, "--steps", 30, "--backwards", 2, "--limit", 30)
OVERHEAD = ("--workers", 1, "--pairs", 10, "--width", 4096, "--micro", 512)
EXACT = ("step", "--rounds", 3, "--steps", 3, "--parameters", 4e6, "--micro", 256)
NEED_A_GPU = ("reduction/fixed_point/test_cuda.py", "state/test_snapshot.py", "data/test_loader.py")
"""Tests in ``tests/edt_hvd`` of which some are skipped without a GPU."""

SKIPPED = "needs CUDA|there is no GPU|Triton is not installed"


def parts(wheels: Path, out: Path, device: str) -> tuple[Part, ...]:
    """Return all parts, the most important first. Their limits add up to eight minutes.

    Args:
        wheels: The directory with all packages.
        out: Where jobs keep their files, in ``jobs``.
        device: ``cuda``; or ``cpu`` for a rehearsal, with smaller sizes.
    """
    rehearsal = device == "cpu"
    python, jobs = str(BIN / "python"), out / "jobs"

    def benchmark(name: str, *arguments: object, **on_cpu: object) -> tuple[str, ...]:
        options = {"device": device, **(on_cpu if rehearsal else {})}
        named = (
            word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))
        )
        return (python, f"benchmarks/{name}.py", *map(str, arguments), *named)

    def launched(name: str, workers: int, command: tuple[str, ...]) -> tuple[str, ...]:
        sizes = ("--min-np", str(workers), "--max-np", str(workers))
        slots = ("-H", f"localhost:{workers}", "--output-dir", str(jobs / name))
        return (str(BIN / "edt-launch"), *sizes, *slots, *command[1:])

    return (
        Part(
            SET_UP,
            "the environment around this interpreter's torch, without a network; Horovod with NCCL",
            ("make", "setup", "TORCH=present", f"WHEELS={wheels}", f"PYTHON={sys.executable}"),
            limit=175,
            needs=(),
            needs_gpu=False,
        ),
        Part(
            "doctor",
            "what this machine and the environment have",
            (str(BIN / "edt"), "doctor", "--json"),
            limit=30,
            needs_gpu=False,
            refused="built without NCCL|does not use this machine's GPUs",
        ),
        Part(
            "kernels",
            "Triton's kernels give the bits of the reference; copies go into pinned memory",
            (
                *(python, "-m", "pytest", "-q", "-n", "3", "-p", "no:cacheprovider"),
                *(f"tests/edt_hvd/{file}" for file in NEED_A_GPU),
            ),
            limit=40,
            refused=None if rehearsal else SKIPPED,
        ),
        Part(
            "bits",
            "1, 2 and 4 workers train the same bits, over NCCL and over Gloo",
            benchmark("gpu_jobs", "bits", jobs, "--limit", 25, width=64, limit=60),
            limit=70,
        ),
        Part(
            "resizes",
            "over NCCL a job grows from 1 worker to 2 and 4 and shrinks to 2, and trains the same bits",
            benchmark("gpu_jobs", "resizes", jobs, width=64),
            limit=45,
        ),
        Part(
            "loss",
            "over NCCL a job survives a kill -9 inside an all-reduce: how long it stands still; same bits",
            benchmark("gpu_jobs", "loss", jobs, *LOSS, kill_after=0.0),
            limit=45,
        ),
        Part(
            "commits",
            "what commits of 350 M parameters cost, beside a bare copy to the host",
            benchmark("commits", parameters=1e6, layers=4, samples=16, steps=5),
            limit=25,
        ),
        Part(
            "overhead",
            "step time of a worker over that of a static loop of Horovod's",
            launched(
                "overhead",
                1,
                benchmark("steady_state", *OVERHEAD, width=64, micro=16),
            ),
            limit=20,
        ),
        Part(
            "exact",
            "step time of exact reduction over ring's, two workers on one GPU",
            launched("exact", 2, benchmark("exact", *EXACT, parameters=1e5, micro=16)),
            limit=20,
        ),
        Part(
            "bandwidth",
            "bandwidth of Triton's kernels beside the device's memcpy",
            benchmark("exact", "kernel", "--pairs", 10, "--elements", 25e6, elements=1e5),
            limit=10,
        ),
    )
