import subprocess
from hashlib import sha256

import pytest
from pydantic import ValidationError

from edt_launch.service.jobs.specification import MAX_START, JobSpec

GOOD: dict[str, object] = {"command": ["python", "train.py"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": []},
        {"command": ["x" * 70_000] * 2},
        {"min": 0},
        {"min": 3, "max": 2},
        {"min": 2, "max": 3, "allowed": [1, 4]},
        {"weight": 0},
        {"directory": "/etc"},
        {"directory": "a/../../b"},
        {"environment": {"A B": ""}},
        {"environment": {"HOROVOD_RANK": "0"}},
        {"environment": {"CUDA_VISIBLE_DEVICES": "7"}},
        {"environment": {"A": "x" * 60_000, "B": "x" * 60_000}},
        {"name": "two\nlines"},
        {"framework": "distPyTorch", "command": ["main.py"], "max": 2},
        {"framework": "PyTorch", "command": ["main.py"], "min": 1, "max": 2},
        {"framework": "edtPyTorch", "command": ["main.py"], "data_dir": "data"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        JobSpec.model_validate({**GOOD, **wrong})


def test_what_is_accepted_can_be_given_to_a_process() -> None:
    character = "\N{GRINNING FACE}"
    most = (MAX_START - len("trueAB==") - 4) // len(character.encode())
    given = {"A": "x", "B": character * (most - 1)}
    spec = JobSpec.model_validate({"command": ["true"], "environment": given})
    text = " ".join(f"{name}={value}" for name, value in spec.environment.items())
    subprocess.run(["/bin/sh", "-c", f"{text} true"], env=dict(spec.environment), check=True)


def test_a_fingerprint_is_that_of_earlier_versions_unless_newer_fields_are_used() -> None:
    spec = JobSpec(command=["true"], name="x")
    before = spec.model_dump_json(exclude={"tags", "comment"})
    assert spec.fingerprint("code") == sha256(f"code {before}".encode()).hexdigest()
    others = [JobSpec(command=["true"], name="x", **said) for said in ({"tags": ["a"]}, {"comment": "a"})]
    assert len({one.fingerprint("code") for one in (spec, *others)}) == 3


def test_a_program_for_torchrun_has_the_sizes_of_its_command():
    command = ["--nnodes", "1:4", "--nproc-per-node", "2", "a.py"]
    spec = JobSpec(command=command, framework="torchrun", max=5)
    assert (spec.sizes.min, spec.sizes.max, spec.sizes.allowed) == (2, 4, (2, 4))
    with pytest.raises(ValidationError, match="leaves no size"):
        JobSpec(command=command, framework="torchrun", min=9)
    with pytest.raises(ValidationError, match="command: --nnodes 0"):
        JobSpec(command=["--nnodes", "0", "a.py"], framework="torchrun")
