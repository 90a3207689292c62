"""Run programs and tests that others wrote for torchrun under `edt torchrun`.

    python tools/torchrun_suites.py --pytorch DIR --transformers DIR --accelerate

Nothing is fetched: the folders are checkouts of pytorch and of transformers, and Accelerate's programs are in
its installed package. The interpreter needs pytest, transformers, datasets and accelerate for them.

- pytorch's `test/distributed/launcher/test_run.py`, with `edt torchrun` in place of
  `torch.distributed.run.main`. Exit code 2 stands for ValueError, any other failure for ChildFailedError.
- programs of transformers and Accelerate, under `edt torchrun` and under torchrun: both have to end alike,
  and to write the same JSON files. The model and the data set that they name are made here, small and random.

Printed is a line for each. The exit code is 1 if one of them has not ended as expected.
"""

import argparse
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EDT_TORCHRUN = (sys.executable, "-m", "edt_launch.launcher.command", "--program", "torchrun")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")

USAGE = 2
"""Exit code of a mistake on the command line."""

IN_LAUNCHER = {
    "test_launch_elastic_agent_raise_exception": "replaces torch's agent",
    "test_launch_shutdown": "replaces torch's agent",
    "test_launch_elastic_worker_raise_exception": "expects an event of torch's agent",
    "test_nproc_gpu_launch_configurations": "replaces functions of torch in the launcher's process",
    "test_nproc_xpu_launch_configurations": "replaces functions of torch in the launcher's process",
}
"""Tests that can pass in a process with torch's own agent alone, and why."""

MODEL = "trl-internal-testing/tiny-Qwen2ForCausalLM-2.5"
DATA_SET = ("wikitext", "wikitext-2-raw-v1")

VOLATILE = ("env_master_port", "env_master_addr")
"""What differs between two runs of torchrun, or of this machine's names."""


@dataclass(frozen=True)
class Result:
    """How a test or a program ended, and whether that was expected."""

    name: str
    outcome: str
    is_expected: bool = True


# pytorch's test, in whose process this module is a plug-in of pytest.


def main_of_edt(words: Sequence[str] | None = None) -> None:
    """Take the place of `torch.distributed.run.main`.

    Raises:
        ValueError: the command line is wrong.
        ChildFailedError: the job has failed.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    command = [*EDT_TORCHRUN, *(words or sys.argv[1:])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(ended.stdout)
    sys.stderr.write(ended.stderr)
    if ended.returncode == USAGE:
        raise ValueError(ended.stderr)
    if ended.returncode:
        failure = ProcessFailure(local_rank=0, pid=0, exitcode=ended.returncode, error_file="<none>")
        raise ChildFailedError("edt torchrun", {0: failure})


def pytest_configure() -> None:
    """Let pytest's tests start `edt torchrun`."""
    from torch.distributed import run

    run.main = main_of_edt  # type: ignore[assignment]


def run_pytorch(checkout: Path, chosen: str) -> Iterator[Result]:
    """Run pytorch's own test of torchrun."""
    test = checkout.absolute() / "test" / "distributed" / "launcher" / "test_run.py"
    here = Path(__file__).resolve()
    path = os.pathsep.join([str(here.parent), *sys.path[1:]])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "pytest", "-p", here.stem, "-p", "no:cacheprovider", "-c", os.devnull]
    options = ["--rootdir", str(test.parent), "-v", "--tb=short", *(["-k", chosen] if chosen else [])]
    said, results = [], []
    with (
        tempfile.TemporaryDirectory() as folder,  # for what jobs write
        subprocess.Popen(
            [*command, *options, str(test)],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as job,
    ):
        assert job.stdout is not None
        for line in job.stdout:
            said.append(line)
            if (result := judge(line)) is not None:
                results.append(result)
                yield result
    if not results:
        yield Result(test.name, "did not run", is_expected=False)
    if not results or not all(result.is_expected for result in results):
        print(*said, sep="", file=sys.stderr)


def judge(line: str) -> Result | None:
    """What a line of pytest says of a test; None if it is about none."""
    found = re.search(r"::(\w+) (PASSED|FAILED|ERROR|SKIPPED)(?: \((.*)\))?", line)
    if found is None:
        return None
    name, outcome, reason = found.groups()
    known = IN_LAUNCHER.get(name)
    why = (known or reason) if outcome != "PASSED" else None
    said = outcome.lower() + (f": {why}" if why else "")
    return Result(name, said, (outcome == "FAILED") if known else outcome in ("PASSED", "SKIPPED"))


# Programs, each under both.


@dataclass(frozen=True)
class Program:
    """A program, its arguments, and how many workers it has. `OUT` in them is a folder of its own."""

    file: Path
    arguments: tuple[str, ...] = ()
    workers: int = 2

    def run(self, launcher: Sequence[str], folder: Path, environment: Mapping[str, str]) -> "Ended":
        """Run it to its end."""
        out = folder / "out"
        out.mkdir(parents=True)
        arguments = [argument.replace("OUT", str(out)) for argument in self.arguments]
        own = ["--nnodes=1", f"--nproc-per-node={self.workers}", "--standalone"]
        if launcher is EDT_TORCHRUN:
            own += ["--output-dir", str(folder / "job")]
        ended = subprocess.run(
            [*launcher, *own, str(self.file), *arguments],
            cwd=environment["SUITES_DATA"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(ended.returncode, _written(out), ended.stdout + ended.stderr)


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, its JSON files by name, and its output."""

    exit_code: int
    files: Mapping[str, Any]
    output: str


def _written(folder: Path) -> dict[str, Any]:
    """The JSON files that a program has written itself, without those of its checkpoints."""
    found = {}
    for file in sorted(folder.rglob("*.json")):
        name = file.relative_to(folder)
        if not any(part.startswith("checkpoint-") for part in name.parts):
            content = json.loads(file.read_text())
            if isinstance(content, dict):
                content = {key: value for key, value in content.items() if not _is_volatile(key)}
            found[str(name)] = content
    return found


def _is_volatile(name: str) -> bool:
    return name in VOLATILE or name.endswith(("_runtime", "_per_second"))


def compare(name: str, ours: Ended, theirs: Ended) -> Result:
    """Whether a program has ended under `edt torchrun` as under torchrun."""
    if ours.exit_code != theirs.exit_code:
        return Result(name, f"exit code {ours.exit_code}, under torchrun {theirs.exit_code}", False)
    different = [
        file
        for file in sorted({*ours.files, *theirs.files})
        if ours.files.get(file) != theirs.files.get(file)
    ]
    if different:
        return Result(name, f"differs from torchrun in {', '.join(different)}", is_expected=False)
    files = f", the same {len(ours.files)} JSON files" if ours.files else ""
    return Result(name, f"exit code {ours.exit_code}{files} as under torchrun", ours.exit_code == 0)


def run_programs(programs: Mapping[str, Program], chosen: str) -> Iterator[Result]:
    """Run programs under both."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        make_data(base / "data")
        offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(base / "cache")}
        environment = {
            **os.environ,
            **offline,
            "SUITES_DATA": str(base / "data"),
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
        }
        for name, program in programs.items():
            if chosen and chosen not in name:
                continue
            ours = program.run(EDT_TORCHRUN, base / "edt" / name, environment)
            result = compare(name, ours, program.run(TORCHRUN, base / "torchrun" / name, environment))
            if not result.is_expected:
                print(ours.output, file=sys.stderr)
            yield result


def transformers_programs(checkout: Path) -> dict[str, Program]:
    """Those of transformers' distributed tests that need no accelerator."""
    folder = checkout.absolute() / "tests" / "trainer" / "distributed" / "scripts"
    out = ("--output_dir", "OUT", "--use_cpu", "--report_to", "none")
    train = ("--num_train_epochs", "1", "--per_device_train_batch_size", "4", "--logging_steps", "1")
    losses = ("--loss_output_file", "OUT/losses.json", "--eval_output_file", "OUT/eval.json")
    both = ("--per_device_train_batch_size", "2", "--run_both_averaging_modes")
    return {
        "torchrun_env_check": Program(folder / "torchrun_env_check.py", out),
        "train": Program(folder / "train.py", (*out, *train, *losses)),
        "train of 1": Program(folder / "train.py", (*out, *train, *losses), workers=1),
        "loss_averaging": Program(folder / "loss_averaging.py", (*out, *both)),
        "worker_seed": Program(folder / "worker_seed.py", out),
    }


def accelerate_programs() -> dict[str, Program]:
    """Those of Accelerate's package."""
    spec = importlib.util.find_spec("accelerate.test_utils")
    if spec is None or spec.origin is None:
        raise SystemExit("accelerate is not installed: pip install accelerate")
    folder = Path(spec.origin).parent / "scripts"
    return {name: Program(folder / f"{name}.py") for name in ("test_script", "test_sync")}


def make_data(folder: Path) -> None:
    """A random model with a tokenizer, and a data set of random words, under the names that programs give."""
    generator = random.Random(0)
    words = ["".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=3)) for _ in range(300)]
    lines = [" ".join(generator.choices(words, k=generator.randint(3, 80))) for _ in range(60)]
    data = folder / DATA_SET[0]
    data.mkdir(parents=True)
    (data / "train.jsonl").write_text("".join(f"{json.dumps({'text': line})}\n" for line in lines))
    lines_of_card = ["configs:", f"- config_name: {DATA_SET[1]}", "  data_files:", "  - split: train"]
    card = "\n".join(["---", *lines_of_card, "    path: train.jsonl", "---", ""])
    (data / "README.md").write_text(card)
    _make_model(folder / MODEL, lines)


def _make_model(folder: Path, lines: Sequence[str]) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # type: ignore[import-not-found]
    from transformers import (  # type: ignore[import-not-found]
        PreTrainedTokenizerFast,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    end = "<|endoftext|>"
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", end], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(lines, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, unk_token="<unk>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    Qwen2ForCausalLM(Qwen2Config(vocab_size=500, **sizes, **heads)).save_pretrained(folder)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Run what others wrote for torchrun under edt torchrun.")
    parser.add_argument("--pytorch", type=Path, metavar="DIR", help="a checkout of pytorch")
    parser.add_argument("--transformers", type=Path, metavar="DIR", help="a checkout of transformers")
    parser.add_argument("--accelerate", action="store_true", help="the programs of the installed package")
    parser.add_argument("-k", dest="chosen", default="", help="only what has this in its name")
    given = parser.parse_args()
    results: list[Result] = []
    suites: list[Iterator[Result]] = []
    if given.pytorch:
        suites.append(run_pytorch(given.pytorch, given.chosen))
    if given.transformers:
        suites.append(run_programs(transformers_programs(given.transformers), given.chosen))
    if given.accelerate:
        suites.append(run_programs(accelerate_programs(), given.chosen))
    for suite in suites:
        for result in suite:
            print(f"{'ok ' if result.is_expected else 'BAD'} {result.name}: {result.outcome}", flush=True)
            results.append(result)
    if not results:
        parser.error("give --pytorch, --transformers or --accelerate")
    sys.exit(not all(result.is_expected for result in results))


if __name__ == "__main__":
    main()
