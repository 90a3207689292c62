"""Checks of what jobs here have: devices, a network, a service."""

from edt_launch.cli.errors import ClientError
from edt_launch.tools.doctor.finding import Finding, gpu_models
from edt_launch.tools.doctor.machine import Machine


def check_devices(machine: Machine) -> Finding:
    """The GPUs that jobs here may use, or the processor cores."""
    cores, gpus = machine.cores(), gpu_models(machine)
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
    try:
        found = machine.service()
    except ClientError as error:
        return Finding("service", "warn", error.text, error.next_step or None)
    return Finding("service", "ok", found or "none is known here; 'edt serve' starts one")
