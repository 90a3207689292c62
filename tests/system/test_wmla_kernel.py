"""`train()` in the kernel of a notebook: executors run the cells again, and nothing is left behind."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from jupyter_client.manager import start_new_kernel

from wmla_service import Service

PATIENCE = 300

IMPORTS = """
import os, torch
from torch import nn
from torch.utils.data import TensorDataset
from fabric_model import FabricModel
"""
DATA = """
def datasets():
    features = torch.arange(64.0).reshape(64, 1) / 64
    data = TensorDataset(features, (features[:, 0] > 0.5).long())
    return data, data
"""
MODEL = """
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
edt = FabricModel(model, datasets, nn.functional.cross_entropy, optimizer)
"""
TRAIN = "edt.train({epochs}, 8, 2, validation_freq=2)\n"
SAVE = "torch.save([p.detach().clone() for p in model.parameters()], {path!r})\n"


class Notebook:
    """A kernel that cells are run in, one after the other."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        own = {"EDT_TEST_KERNEL": self.mark, "DATA_DIR": str(folder), "TMPDIR": str(folder.parent)}
        env = os.environ | own | variables
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", cwd=str(folder), env=env, startup_timeout=PATIENCE
        )

    def run(self, cell: str, until: str = "", before: Callable[[], object] = int) -> tuple[str, str]:
        """How a cell ends, and what it prints; interrupted, after `before`, when it has printed `until`."""
        printed: list[str] = []

        def take(message: Any) -> None:
            content = message["content"]
            printed.append(content.get("text") or "\n".join(content.get("traceback", ())))
            if "data" in content:
                printed.append(" ".join(content["data"]))
            if until and until in printed[-1]:
                before()
                self.manager.interrupt_kernel()

        reply = self.client.execute_interactive(cell, timeout=PATIENCE, output_hook=take)
        return reply["content"]["status"], "".join(printed)

    def processes(self) -> list[psutil.Process]:
        """All processes that the kernel has started, whoever has started them in between."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                is_ours = process.environ().get("EDT_TEST_KERNEL") == self.mark
                if is_ours and process.pid != self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    @property
    def pid(self) -> int:
        """The kernel's."""
        return int(self.manager.provisioner.pid)

    def weights(self, cells: str = "") -> list[torch.Tensor]:
        path = self.folder / "weights.pt"
        status, printed = self.run(cells + SAVE.format(path=str(path)))
        assert status == "ok", printed
        found: list[torch.Tensor] = torch.load(path)
        return found


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    with opened(tmp_path / "a folder", EDT_URL="") as notebook:
        yield notebook


@contextlib.contextmanager
def opened(folder: Path, **variables: str) -> Iterator[Notebook]:
    folder.mkdir()
    notebook = Notebook(folder, **variables)
    try:
        yield notebook
    finally:
        notebook.client.stop_channels()
        notebook.manager.shutdown_kernel(now=True)
        for process in notebook.processes():
            process.kill()


@contextlib.contextmanager
def pooled(service: Service, folder: Path) -> Iterator[tuple[Notebook, str]]:
    """A notebook that trains in the pool of a service, and the token that it has."""
    service.start()
    token = (service.home / "token").read_text().strip()
    with opened(folder, EDT_URL=service.url, EDT_TOKEN=token) as notebook:
        yield notebook, token


def test_executors_train_what_the_cells_say_to_the_bit(notebook: Notebook) -> None:
    cells = [
        *(
            IMPORTS,
            "%matplotlib inline\n!touch made-once",
            DATA,
            "raise ValueError('a mistake')",
            DATA,
            MODEL,
        ),
        *("assert os.environ['DATA_DIR'] == os.getcwd()", "model[0].weight.data += 0.25"),
        TRAIN.format(epochs=2),
    ]
    statuses = [notebook.run(cell) for cell in cells]
    assert [status for status, _ in statuses] == [*["ok"] * 3, "error", *["ok"] * 5], statuses
    assert "image/png" in statuses[-1][1]
    alone = notebook.folder / "alone.py"
    path = notebook.folder / "alone.pt"
    alone.write_text(IMPORTS + DATA + MODEL + cells[-2] + "\n" + cells[-1] + SAVE.format(path=str(path)))
    subprocess.run([sys.executable, alone], check=True, cwd=notebook.folder, stdout=subprocess.DEVNULL)
    assert all(map(torch.equal, notebook.weights(), torch.load(path)))
    assert (notebook.folder / "model" / "train" / "model_epoch_final.pth").is_file()
    eventually(lambda: notebook.processes() == [])


@pytest.mark.full
def test_a_training_that_is_interrupted_or_whose_kernel_is_killed_leaves_nothing_behind(
    notebook: Notebook,
) -> None:
    for cell in (IMPORTS, DATA, MODEL):
        notebook.run(cell)
    status, printed = notebook.run(TRAIN.format(epochs=10**6), until="image/png")
    assert (status, "KeyboardInterrupt" in printed) == ("error", True)
    eventually(lambda: notebook.processes() == [])
    status, printed = notebook.run(MODEL + TRAIN.format(epochs=2))
    assert status == "ok", printed
    eventually(lambda: notebook.processes() == [])
    notebook.client.execute(TRAIN.format(epochs=10**6))
    eventually(lambda: any("executor" in " ".join(each.cmdline()) for each in notebook.processes()))
    psutil.Process(notebook.pid).kill()
    eventually(lambda: notebook.processes() == [])


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_pool_trains_for_a_notebook_and_is_left_no_job(service: Service, tmp_path: Path) -> None:
    with pooled(service, tmp_path / "a folder") as (notebook, token):
        (notebook.folder / "beside.py").write_text("RATE = 0.5\n")
        for cell in (IMPORTS + "from beside import RATE", DATA, MODEL):
            assert notebook.run(cell)[0] == "ok"
        status, printed = notebook.run(TRAIN.format(epochs=10**6), until="image/png")
        assert (status, "KeyboardInterrupt" in printed) == ("error", True)
        eventually(lambda: notebook.processes() == [])
        assert states(service, token) in (["stopping"], ["stopped"])
        status, printed = notebook.run(MODEL + TRAIN.format(epochs=2))
        assert (status, "where it stands: edt why notebook-" in printed) == ("ok", True), printed
        assert "image/png" in printed
        assert (notebook.folder / "model" / "train" / "model_epoch_final.pth").is_file()
        status, printed = notebook.run(TRAIN.format(epochs=1))  # goes on from there, under another name
        assert status == "ok", printed
        assert states(service, token).count("succeeded") == 2

        # Interrupted while the service is away, it is said how to stop the job.
        status, printed = notebook.run(TRAIN.format(epochs=10**6), until="image/png", before=service.kill)
        assert (status, "if it still runs later: edt stop notebook-" in printed) == ("error", True), printed
        assert notebook.run("1 + 1")[0] == "ok"
        start_again(service)
        eventually(lambda: set(states(service, token)) == {"stopped", "succeeded"})
        eventually(lambda: notebook.processes() == [])

        # So it is when the kernel dies meanwhile.
        notebook.client.execute(TRAIN.format(epochs=10**6))
        eventually(lambda: "running" in states(service, token))
        service.kill()
        psutil.Process(notebook.pid).kill()
        start_again(service)
        eventually(lambda: set(states(service, token)) == {"stopped", "succeeded"})
        eventually(lambda: notebook.processes() == [])


def start_again(service: Service) -> None:
    """At the address that it had."""
    port = service.url.rpartition(":")[2].strip("/")
    (service.home / "server.json").unlink()
    service.start(options=("--port", port))


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def states(service: Service, token: str) -> list[str]:
    """Of all jobs."""
    headers = {"Authorization": f"Bearer {token}"}
    return [job["state"] for job in service.ask(f"{service.url}/api/v1/jobs?all=1", headers=headers)["jobs"]]
