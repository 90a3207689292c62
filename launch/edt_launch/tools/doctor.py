"""``edt doctor``: what is on this machine, and what to do about what is not.

A check is a function of a `Machine` that returns a `Finding`. Whatever may be missing or broken (torch,
Horovod, MPI) is imported by a child process, which may fail or crash without harm. With hosts, `reach` finds
out which of them reach each other.
"""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edt_launch.cli.errors import MistakenError
from edt_launch.core.command_line import with_options
from edt_launch.core.errors import EdtLaunchError
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.core.system import current_directory
from edt_launch.launcher.transports.ssh import SshOptions
from edt_launch.tools.machine import CommandOutput, Machine

Status = Literal["ok", "warn", "fail"]

SET_UP = "run 'make setup'"


@dataclass(frozen=True)
class Finding:
    """What one check found; `fix` says what to do, where something is to be done."""

    name: str
    status: Status
    finding: str
    fix: str | None = None


def check_interpreter(machine: Machine) -> Finding:
    """Python 3.11 or newer."""
    version = ".".join(map(str, machine.version))
    found = f"Python {version} at {machine.executable}"
    if machine.version >= (3, 11, 0):
        return Finding("interpreter", "ok", found)
    fix = "make the environment with a newer Python: make PYTHON=python3.12 setup"
    return Finding("interpreter", "fail", f"{found}, older than 3.11", fix)


def check_compiler(machine: Machine) -> Finding:
    """A C++ compiler; only building needs it."""
    names = filter(None, (machine.environment.get("CXX"), "c++", "g++", "clang++"))
    path = next(filter(None, map(machine.which, names)), None)
    return _tool(machine, "c++", path, "apt install g++, or dnf install gcc-c++")


def check_make(machine: Machine) -> Finding:
    """Make; only building needs it."""
    return _tool(machine, "make", machine.which("make"), "apt install make, or dnf install make")


def check_cmake(machine: Machine) -> Finding:
    """CMake; only building needs it."""
    return _tool(machine, "cmake", machine.which("cmake"), SET_UP)


MPI_PROBE = "from mpi4py import MPI; print(MPI.Get_library_version().splitlines()[0].strip(chr(0)))"


def check_mpi(machine: Machine) -> Finding:
    """MPI, asked through mpi4py, and mpirun. Only jobs started by mpirun need it."""
    library = machine.run(machine.executable, "-c", MPI_PROBE)
    if library.code != 0:
        return Finding("mpi", "warn", f"mpi4py finds no MPI: {library.reason}", SET_UP)
    version = library.stdout.strip().split(", package")[0]
    mpirun = machine.which("mpirun")
    if mpirun is None:
        return Finding("mpi", "warn", f"{version}, but no mpirun", SET_UP)
    return Finding("mpi", "ok", f"{version}, {mpirun}")


HOROVOD_PROBE = """
import json
import horovod, horovod.torch as hvd
built = lambda names: [name for name in names if getattr(hvd, name + "_built")()]
print(json.dumps({
    "version": horovod.__version__,
    "controllers": built(["gloo", "mpi"]),
    "operations": built(["gloo", "mpi", "nccl", "cuda"]),
    "can_abort": hasattr(hvd.mpi_ops._basics.MPI_LIB_CTYPES, "horovod_abort_collectives"),
}))
"""


def check_horovod(machine: Machine) -> Finding:
    """Horovod for the installed torch, with Gloo, which elastic jobs need, and MPI, which mpirun needs."""
    found, output = _probe(machine, HOROVOD_PROBE)
    if found is None:
        return Finding("horovod", "fail", f"cannot be imported: {output.reason}", SET_UP)
    controllers: list[str] = found["controllers"]
    operations: list[str] = found["operations"]
    text = f"{found['version']}, controllers: {', '.join(controllers)}; operations: {', '.join(operations)}"
    rebuild = "remove ~/.cache/edt/wheels and .venv, then run 'make setup'"
    if "gloo" not in controllers:
        return Finding("horovod", "fail", f"{text}: built without Gloo, which elastic jobs need", rebuild)
    if not found["can_abort"]:
        missing = "not built by 'make setup', without whose changes elastic jobs hang"
        return Finding("horovod", "fail", f"{text}: {missing}", rebuild)
    if "mpi" not in controllers:
        return Finding("horovod", "warn", f"{text}: built without MPI, which mpirun needs", rebuild)
    if _gpus(machine) and "nccl" not in operations:
        return Finding("horovod", "warn", f"{text}: built without NCCL, so the GPUs are not used", rebuild)
    return Finding("horovod", "ok", text)


TORCH_PROBE = """
import json, torch
gpus = torch.cuda.device_count()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "gpus": gpus}))
"""


TESTED = (("2.8", "3.11"), ("2.13", "3.11"), ("2.15", "3.11"))
"""Versions of torch and Python that the tests have been run with."""

OLDEST_TORCH = (2, 6)


def check_torch(machine: Machine) -> Finding:
    """A torch that can be imported, new enough, and that uses the GPUs where there are some."""
    found, output = _probe(machine, TORCH_PROBE)
    if found is None:
        return Finding("torch", "fail", f"cannot be imported: {output.reason}", SET_UP)
    built = f"CUDA {found['cuda']}, {found['gpus']} GPUs" if found["cuda"] else "CPU"
    text = f"{found['version']} ({built})"
    if _gpus(machine) and not found["gpus"]:
        fix = "install a CUDA build of torch for the interpreter, then run 'make clean setup'"
        return Finding("torch", "warn", f"{text} does not use this machine's GPUs", fix)
    version = tuple(int(part) for part in found["version"].split(".")[:2])
    if version < OLDEST_TORCH:
        return Finding("torch", "warn", f"{text} is older than 2.6", "install a newer one: make clean setup")
    if (f"{version[0]}.{version[1]}", f"{machine.version[0]}.{machine.version[1]}") in TESTED:
        return Finding("torch", "ok", f"{text}, a tested version")
    tested = ", ".join(f"torch {torch} with Python {python}" for torch, python in TESTED)
    return Finding("torch", "ok", f"{text}; tested are {tested}")


TORCHVISION_PROBE = """
import json
try:
    from edt_hvd import torchvision_cpu
except ImportError:
    adapted = False
else:
    adapted = torchvision_cpu.define_missing_operators()
import torchvision
print(json.dumps({"version": torchvision.__version__, "adapted": bool(adapted)}))
"""


def check_torchvision(machine: Machine) -> Finding:
    """Torchvision, imported as a training script does; only some examples need it."""
    found, output = _probe(machine, TORCHVISION_PROBE)
    if found is None:
        return Finding("torchvision", "warn", f"cannot be imported: {output.reason}", SET_UP)
    note = " (a CUDA build beside a CPU torch: no compiled operators)" if found["adapted"] else ""
    return Finding("torchvision", "ok", f"{found['version']}{note}")


NATIVE_PROBE = """
import json
from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
print(json.dumps({"native": fixed_point.NATIVE}))
"""


def check_native(machine: Machine) -> Finding:
    """The compiled kernels; without them their Python twins are used, which are slower."""
    found, output = _probe(machine, NATIVE_PROBE)
    if found is None:
        return Finding("native", "fail", f"edt_hvd cannot be imported: {output.reason}", SET_UP)
    if not found["native"]:
        return Finding("native", "warn", "kernels are not built: the slower Python ones are used", SET_UP)
    return Finding("native", "ok", "kernels are built")


RAY_PROBE = """
import importlib.util, json, socket
found = {"version": None, "address": None, "wants_token": False}
if importlib.util.find_spec("ray"):
    import ray
    from ray._private.services import canonicalize_bootstrap_address
    from ray._raylet import AuthenticationMode, get_authentication_mode
    found["version"] = ray.__version__
    found["wants_token"] = get_authentication_mode() != AuthenticationMode.DISABLED
    try:
        address = canonicalize_bootstrap_address("auto")
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), 5).close()
        found["address"] = address
    except OSError:  # no cluster runs here
        pass
print(json.dumps(found))
"""


def check_ray(machine: Machine) -> Finding:
    """Ray, and the cluster that ``--ray auto`` would use. Only ``--ray`` needs it."""
    found, output = _probe(machine, RAY_PROBE)
    if found is None:
        return Finding("ray", "warn", f"does not work: {output.reason}", "pip install 'edt-hvd[ray]'")
    if found["version"] is None:
        return Finding("ray", "ok", "not installed; only --ray needs it")
    if found["address"] is None:
        return Finding("ray", "ok", f"{found['version']}, no cluster runs here")
    text = f"{found['version']}, a cluster at {found['address']}"
    if not found["wants_token"]:
        problem = "without a token: whoever reaches it can run programs on its nodes"
        fix = "start its nodes, and EDT, with RAY_AUTH_MODE=token"
        return Finding("ray", "warn", f"{text} {problem}", fix)
    return Finding("ray", "ok", f"{text}, with a token")


#: Variables with which a host computes other bits than one that does not have them.
BIT_CHANGING = (
    "ATEN_CPU_CAPABILITY",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)

#: The settings with which cuBLAS is deterministic, by its documentation.
CUBLAS_WORKSPACES = (":4096:8", ":16:8")

#: What OMP_NUM_THREADS may be: a number, or a list with one for each level of nested threads.
POSITIVE_NUMBERS = r"\s*0*[1-9][0-9]*\s*(,\s*0*[1-9][0-9]*\s*)*"


def check_determinism(machine: Machine) -> Finding:
    """Whatever makes the same work give other bits; the results of exact reduction differ then."""
    environment = machine.environment
    troubles = [
        (f"{name}={environment[name]} lets the number of threads change", f"unset {name}")
        for name in ("OMP_DYNAMIC", "MKL_DYNAMIC")
        if environment.get(name, "").lower() in ("1", "true", "yes")
    ]
    threads = environment.get("OMP_NUM_THREADS", "")
    if threads.strip() and not re.fullmatch(POSITIVE_NUMBERS, threads):
        fix = "unset it, or set it to a positive number, such as 1"
        troubles.append((f"OMP_NUM_THREADS={threads} is no number of threads", fix))
    workspace = environment.get("CUBLAS_WORKSPACE_CONFIG")
    if workspace is not None and workspace not in CUBLAS_WORKSPACES:
        fix = f"unset it, or set it to {CUBLAS_WORKSPACES[0]}"
        troubles.append((f"CUBLAS_WORKSPACE_CONFIG={workspace} lets cuBLAS vary", fix))
    models = sorted(set(_gpus(machine)))
    if len(models) > 1:
        fix = "give a job GPUs of one model"
        troubles.append((f"GPUs of several models ({', '.join(models)}) compute different bits", fix))
    if changing := [name for name in BIT_CHANGING if name in environment]:
        fix = "set the same on every host of a job, or unset it"
        troubles.append((f"{', '.join(changing)} changes the bits that this host computes", fix))
    if not troubles:
        return Finding("determinism", "ok", "nothing here breaks edt_hvd.init(deterministic=True)")
    found, fixes = zip(*troubles, strict=True)
    return Finding("determinism", "warn", "; ".join(found), "; ".join(fixes))


def check_devices(machine: Machine) -> Finding:
    """The GPUs that jobs here may use, or the processor cores."""
    cores, gpus = machine.cores(), _gpus(machine)
    if not gpus:
        return Finding("devices", "ok", f"no GPU, {cores} cores: workers run on the CPU")
    return Finding("devices", "ok", f"{len(gpus)} GPUs ({', '.join(sorted(set(gpus)))}), {cores} cores")


def check_network(machine: Machine) -> Finding:
    """The interfaces that workers can talk over."""
    interfaces = machine.interfaces()
    local = [name for name, address in interfaces.items() if address.startswith("127.")]
    other = [f"{name} {address}" for name, address in interfaces.items() if name not in local]
    if not local:
        fix = "bring the loopback interface up: ip link set lo up"
        return Finding("network", "fail", "no loopback interface: workers cannot talk", fix)
    if not other:
        return Finding("network", "ok", f"{local[0]} only: jobs on this machine")
    return Finding("network", "ok", f"{local[0]} for jobs on this machine; {', '.join(other)} for several")


def check_service(machine: Machine) -> Finding:
    """The job service that `edt` would ask. Only its commands need it."""
    from edt_launch.cli.errors import ClientError

    try:
        found = machine.service()
    except ClientError as error:
        return Finding("service", "warn", error.text, error.next_step or None)
    return Finding("service", "ok", found or "none is known here; 'edt serve' starts one")


CHECKS: tuple[Callable[[Machine], Finding], ...] = (
    check_interpreter,
    check_compiler,
    check_make,
    check_cmake,
    check_mpi,
    check_horovod,
    check_torch,
    check_torchvision,
    check_native,
    check_determinism,
    check_devices,
    check_network,
    check_ray,
    check_service,
)


def examine(machine: Machine) -> list[Finding]:
    """Run all checks, the slow ones beside each other, and return their findings in order."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda check: check(machine), CHECKS))


@with_options(SshOptions, PortOptions)
def doctor(
    hosts: Annotated[
        str | None,
        typer.Argument(metavar="[HOSTS|SCRIPT.PY]", help="Instead: node1,node2,..., a host file, a script."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
    *groups: object,
) -> None:
    """Check this machine, the environment and the service; or which HOSTS of a job reach each other.

    Of SCRIPT.PY it shows what to change before the script is resized.

    Exit code 1 when a check fails.
    """
    if current_directory.is_deleted():  # where nothing that is tried would run
        raise MistakenError(current_directory.DELETED, current_directory.ADVICE)
    if hosts is None:
        raise typer.Exit(report(Machine(), as_json=as_json))
    if hosts.endswith(".py"):
        advise(Path(hosts), as_json=as_json)
        return
    from edt_launch.tools import reach

    try:
        found = reach.examine(reach.named(hosts), RunOptions(groups=groups))
    except EdtLaunchError as error:
        raise MistakenError(f"edt doctor {hosts}: {error}") from None
    print(json.dumps(found.as_dict(), indent=2) if as_json else found.table)
    raise typer.Exit(not found.is_ok)


def advise(script: Path, *, as_json: bool) -> None:
    """Print what a script should have for resizes, and has not; as JSON, ``{"advice": [text]}``.

    Raises:
        MistakenError: it cannot be read.
    """
    from edt_launch.launcher.programs.kinds import kinds

    try:
        source = script.read_text(errors="replace")
    except OSError as error:
        raise MistakenError(f"edt doctor {script}: {error.strerror}; give the path of a script") from None
    advice = [text for kind in kinds() for text in kind.advise(source)]
    if as_json:
        print(json.dumps({"advice": advice}, indent=2))
    else:
        print(*advice or [f"{script}: nothing to change is known"], sep="\n")


def report(machine: Machine, *, as_json: bool) -> int:
    """Print the findings and return the exit code: 1 when a check failed, otherwise 0.

    As JSON they are ``{"ok": bool, "checks": [{"name", "status", "finding", "fix"}]}``.
    """
    findings = examine(machine)
    failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            fix = f" -> {finding.fix}" if finding.fix else ""
            print(f"{finding.status:4}  {finding.name:11}  {finding.finding}{fix}")
    return int(failed)


def _tool(machine: Machine, name: str, path: str | None, fix: str) -> Finding:
    if path is None:
        return Finding(name, "warn", "not found; building needs it", fix)
    version = machine.run(path, "--version")
    if version.code != 0:
        return Finding(name, "warn", f"{path} does not run: {version.reason}", fix)
    return Finding(name, "ok", f"{version.stdout.splitlines()[0] if version.stdout else 'found'}, {path}")


def _probe(machine: Machine, code: str) -> tuple[dict[str, Any] | None, CommandOutput]:
    """Run `code` in a child interpreter; return the JSON object of its last line, None when it failed."""
    output = machine.run(machine.executable, "-c", code)
    try:
        found = json.loads(output.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return None, output
    return (found if output.code == 0 and isinstance(found, dict) else None), output


def _gpus(machine: Machine) -> list[str]:
    listing = machine.run("nvidia-smi", "-L")
    return re.findall(r"^GPU \d+: (.*?) \(", listing.stdout, re.MULTILINE) if listing.code == 0 else []
