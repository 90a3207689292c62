"""The check of what changes the bits of results."""

import re

from edt_launch.tools.doctor.finding import Finding, gpu_models
from edt_launch.tools.doctor.machine import Machine

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
    models = sorted(set(gpu_models(machine)))
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
