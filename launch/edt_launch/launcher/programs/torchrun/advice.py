"""What resizes would do to a program by its trainer or its sampler: told before it starts."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

LIGHTNING = ("lightning", "pytorch_lightning")

SAMPLERS = ("ElasticDistributedSampler", "DistributedSampler")

MAX_SOURCE = 2**20
"""Bytes of a script that are read at most."""


def advice(source: str) -> list[str]:
    """What a program's source should have for resizes, and has not."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # python itself tells what is wrong with it
        return []
    imported = {*_imported(tree)}
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = []
    sampler = next((name for name in SAMPLERS if name in named), None)
    if sampler is not None and "ElasticBatchSampler" not in named:
        found.append(
            f"{sampler} uses samples twice to fill up an epoch, and begins one that was interrupted again: "
            "edt_hvd.torchrun.ElasticBatchSampler goes on inside it, and loses and repeats none"
        )
    if imported & {*LIGHTNING} and "devices_and_nodes" not in named:
        found.append(
            "Lightning stops where devices x num_nodes is not the number of workers, which changes here: "
            "give its Trainer **edt_hvd.torchrun.devices_and_nodes()"
        )
    if imported & {*LIGHTNING} and any(map(_chooses_checkpoint, ast.walk(tree))):
        found.append(
            "new workers run what comes before Trainer() while the others still train, so a checkpoint that "
            'is chosen there may be an older one by then: give fit() ckpt_path="last", and ModelCheckpoint '
            "save_last=True"
        )
    if "transformers" in imported and "accumulation" not in named and _has_trainer(named):
        found.append(
            "transformers' Trainer resumes at the right sample only if the total batch stays the same: give "
            "gradient_accumulation_steps=edt_hvd.torchrun.accumulation(total=..., per_device=...)"
        )
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    """The packages that are imported, wherever in the program."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield node.module.partition(".")[0]


def _chooses_checkpoint(node: ast.AST) -> bool:
    """Whether it is a call of `fit` with a path that the program has found by itself."""
    is_fit = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit"
    return is_fit and any(
        keyword.arg == "ckpt_path" and not isinstance(keyword.value, ast.Constant)
        for keyword in node.keywords  # type: ignore[attr-defined]
    )


def _has_trainer(named: set[str]) -> bool:
    return any(name.endswith("Trainer") for name in named)


def source_of(command: Sequence[str]) -> str:
    """The source of the script of a command of Python; empty if it is none, or cannot be read."""
    script = next((word for word in command[1:] if word != "-u"), "")
    if not script.endswith(".py"):
        return ""
    try:
        with Path(script).open("rb") as file:
            return file.read(MAX_SOURCE).decode(errors="replace")
    except OSError:
        return ""
