import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from edt_launch.tools.doctor import command, software, surroundings
from edt_launch.tools.doctor.determinism import check_determinism
from edt_launch.tools.doctor.finding import Finding
from edt_launch.tools.doctor.machine import TIMED_OUT, CommandOutput, Machine


def horovod(controllers: Sequence[str] = ("gloo", "mpi"), can_abort: bool = True) -> CommandOutput:
    found = {
        "version": "0.28.1",
        "controllers": controllers,
        "operations": controllers,
        "can_abort": can_abort,
    }
    return CommandOutput(0, json.dumps(found))


HEALTHY = {
    software.MPI_PROBE: CommandOutput(0, "Open MPI v5.0.11, package: Open MPI someone@somewhere\n"),
    software.HOROVOD_PROBE: horovod(),
    software.TORCH_PROBE: CommandOutput(0, 'some banner\n{"version": "2.13.0", "cuda": null, "gpus": 0}\n'),
    software.TORCHVISION_PROBE: CommandOutput(0, '{"version": "0.28.0", "adapted": true}\n'),
    software.NATIVE_PROBE: CommandOutput(0, '{"native": true}\n'),
    software.RAY_PROBE: CommandOutput(0, '{"version": null, "address": null, "wants_token": false}\n'),
}
ONE_GPU = CommandOutput(0, "GPU 0: NVIDIA H200 (UUID: GPU-0a1b)\n")


@dataclass(frozen=True)
class FakeMachine:
    """Where everything is in order, but for what a test takes away or breaks."""

    version: tuple[int, int, int] = (3, 11, 7)
    executable: str = "/env/bin/python"
    environment: Mapping[str, str] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    probes: Mapping[str, CommandOutput] = field(default_factory=dict)
    commands: Mapping[str, CommandOutput] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=lambda: {"lo": "127.0.0.1", "eth0": "192.0.2.7"})
    served: str | None = None

    def which(self, command: str) -> str | None:
        return None if command in self.missing else f"/bin/{command}"

    def run(self, *command: str) -> CommandOutput:
        if command[0] == self.executable:
            return {**HEALTHY, **self.probes}[command[2]]
        if command[0] == "nvidia-smi":
            return self.commands.get(
                "nvidia-smi", CommandOutput(127, "", "nvidia-smi: No such file or directory")
            )
        return self.commands.get(command[0], CommandOutput(0, f"{command[0]} version 3.31.10\nmore\n"))

    def cores(self) -> int:
        return 8

    def interfaces(self) -> Mapping[str, str]:
        return self.addresses

    def service(self) -> str | None:
        return self.served


def test_a_healthy_machine_has_nothing_to_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.report(FakeMachine(), as_json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * len(command.CHECKS)
    assert not any("->" in line for line in lines)


def with_probe(probe: str, output: CommandOutput) -> FakeMachine:
    return FakeMachine(probes={probe: output})


def torch_of(version: str) -> FakeMachine:
    found = {"version": version, "cuda": None, "gpus": 0}
    return with_probe(software.TORCH_PROBE, CommandOutput(0, json.dumps(found)))


def ray_of(version: str | None, address: str | None, *, wants_token: bool = False) -> FakeMachine:
    found = {"version": version, "address": address, "wants_token": wants_token}
    return with_probe(software.RAY_PROBE, CommandOutput(0, json.dumps(found)))


NO_MPI = CommandOutput(1, "", "Traceback\nRuntimeError: cannot load MPI library")
SLOW = CommandOutput(TIMED_OUT, "", "no answer within 120 s")
GPU = {"nvidia-smi": ONE_GPU}


@pytest.mark.parametrize(
    "check, machine, status, words",
    [
        (software.check_interpreter, FakeMachine(version=(3, 10, 2)), "fail", "3.10.2"),
        (
            software.check_mpi,
            with_probe(software.MPI_PROBE, NO_MPI),
            "warn",
            "Error: cannot load MPI library",
        ),
        (
            software.check_horovod,
            with_probe(software.HOROVOD_PROBE, horovod(can_abort=False)),
            "fail",
            "not built",
        ),
        (software.check_torch, FakeMachine(commands=GPU), "warn", "does not use"),
        (
            software.check_torch,
            with_probe(software.TORCH_PROBE, SLOW),
            "fail",
            "not imported yet: no answer within 120 s",
        ),
        (software.check_torch, torch_of("2.13.1"), "ok", "2.13.1 (CPU), a tested version"),
        (software.check_torch, torch_of("2.5.1"), "warn", "older than 2.6"),
        (software.check_torch, with_probe(software.TORCH_PROBE, CommandOutput(-11, "")), "fail", "signal 11"),
        (surroundings.check_devices, FakeMachine(commands=GPU), "ok", "1 GPUs (NVIDIA H200)"),
        (surroundings.check_network, FakeMachine(addresses={}), "fail", "no loopback"),
        (software.check_ray, ray_of("2.60.0", "h:6379"), "warn", "a cluster at h:6379 without a token"),
    ],
)
def test_findings(check: Callable[[Machine], Finding], machine: FakeMachine, status: str, words: str) -> None:
    found = check(machine)
    assert (found.status, words in found.finding) == (status, True), found
    assert (found.fix is None) == (status == "ok")


@pytest.mark.full
def test_this_machine_passes() -> None:
    findings = [check(Machine()) for check in command.CHECKS]
    assert [finding for finding in findings if finding.status == "fail"] == []


@pytest.mark.parametrize(
    "environment, gpus, found, fix",
    [
        ({"OMP_DYNAMIC": "TRUE"}, "", "OMP_DYNAMIC=TRUE lets the number of", "unset OMP_DYNAMIC"),
        ({"OMP_NUM_THREADS": "0"}, "", "OMP_NUM_THREADS=0 is no number", "such as 1"),
        ({"ATEN_CPU_CAPABILITY": "avx2"}, "", "ATEN_CPU_CAPABILITY changes the bits", "the same on every"),
        (
            {},
            "GPU 0: NVIDIA A100 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n",
            "GPUs of several models (NVIDIA A100, NVIDIA H200)",
            "give a job GPUs of one model",
        ),
    ],
)
def test_what_breaks_determinism_is_named(
    environment: dict[str, str], gpus: str, found: str, fix: str
) -> None:
    commands = {"nvidia-smi": CommandOutput(0, gpus)} if gpus else {}
    finding = check_determinism(FakeMachine(environment=environment, commands=commands))
    assert finding.status == "warn"
    assert found in finding.finding
    assert finding.fix is not None
    assert fix in finding.fix
