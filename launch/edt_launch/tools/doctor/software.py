"""Checks of what is installed."""

from edt_launch.tools.doctor.finding import SET_UP, Finding, gpu_models, import_failure, probe
from edt_launch.tools.doctor.machine import Machine


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
    found, output = probe(machine, HOROVOD_PROBE)
    if found is None:
        return import_failure("horovod", "fail", output)
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
    if gpu_models(machine) and "nccl" not in operations:
        return Finding("horovod", "warn", f"{text}: built without NCCL, so the GPUs are not used", rebuild)
    return Finding("horovod", "ok", text)


TORCH_PROBE = """
import json, torch
gpus = torch.cuda.device_count()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "gpus": gpus}))
"""


TESTED = (("2.8", "3.11"), ("2.13", "3.11"), ("2.13", "3.12"), ("2.15", "3.11"))
"""Versions of torch and Python that the tests have been run with."""

OLDEST_TORCH = (2, 6)


def check_torch(machine: Machine) -> Finding:
    """A torch that can be imported, new enough, and that uses the GPUs where there are some."""
    found, output = probe(machine, TORCH_PROBE)
    if found is None:
        return import_failure("torch", "fail", output)
    built = f"CUDA {found['cuda']}, {found['gpus']} GPUs" if found["cuda"] else "CPU"
    text = f"{found['version']} ({built})"
    if gpu_models(machine) and not found["gpus"]:
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
    found, output = probe(machine, TORCHVISION_PROBE)
    if found is None:
        return import_failure("torchvision", "warn", output)
    note = " (a CUDA build beside a CPU torch: no compiled operators)" if found["adapted"] else ""
    return Finding("torchvision", "ok", f"{found['version']}{note}")


NATIVE_PROBE = """
import json
from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
print(json.dumps({"native": fixed_point.NATIVE}))
"""


def check_native(machine: Machine) -> Finding:
    """The compiled kernels; without them their Python twins are used, which are slower."""
    found, output = probe(machine, NATIVE_PROBE)
    if found is None:
        return import_failure("native", "fail", output)
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
    found, output = probe(machine, RAY_PROBE)
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


def _tool(machine: Machine, name: str, path: str | None, fix: str) -> Finding:
    if path is None:
        return Finding(name, "warn", "not found; building needs it", fix)
    version = machine.run(path, "--version")
    if version.code != 0:
        return Finding(name, "warn", f"{path} does not run: {version.reason}", fix)
    return Finding(name, "ok", f"{version.stdout.splitlines()[0] if version.stdout else 'found'}, {path}")
