"""What this machine can run workers on."""

import os

import pytest

from edt_launch.cluster import devices
from edt_launch.cluster.devices import Machine, this_machine, visible


@pytest.mark.parametrize(
    "variable, expected",
    [
        (None, ("0", "1", "2")),
        ("", ()),
        ("-1", ()),
        ("2,0", ("2", "0")),
        (" 1 , 2 ", ("1", "2")),
        ("0,7,1", ("0",)),
        ("1,1", ("1",)),
        ("GPU-5f3a,MIG-7/1/0", ("GPU-5f3a", "MIG-7/1/0")),
        ("GPU-$(x)", ()),
    ],
)
def test_the_variable_restricts_the_gpus(variable, expected):
    assert visible(["0", "1", "2"], variable) == expected


def test_a_variable_makes_no_gpus():
    assert visible([], "0,1") == ()


def test_workers_are_gpus_or_else_cores():
    assert Machine(("0", "1"), 8).workers == 2
    assert Machine((), 8).workers == 8


@pytest.mark.parametrize(
    "program, gpus",
    [
        ("echo 0; echo 1", ("0", "1")),
        ("echo 'No devices were found'; exit 6", ()),
        ("echo Failed to start", ()),
    ],
)
def test_asks_the_drivers_tool(tmp_path, monkeypatch, program, gpus):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{program}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert this_machine().gpus == gpus


def test_without_the_tool_there_are_cores(monkeypatch):
    monkeypatch.setattr(devices, "NVIDIA_SMI", ("there is no such command",))
    machine = this_machine()
    assert machine.gpus == ()
    assert machine.cores >= 1
