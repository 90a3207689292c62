"""The notebook of the guide runs from its first cell to its last, as it is, against a service."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from wmla_service import Service

NOTEBOOK = Path(__file__).parents[2] / "docs" / "how-to" / "wmla.ipynb"


@pytest.mark.full
def test_the_notebook_runs(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service.data.mkdir()
    service.start("Admin", options=["--tls-self-signed"])
    assert service.url.startswith("https://")
    monkeypatch.setenv("EDT_PORT", service.url.rpartition(":")[2])
    monkeypatch.setenv("EDT_PASSWORD", service.passwords["Admin"])
    monkeypatch.setenv("EDT_DATA_FS", str(service.data))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    folder = tmp_path / "a folder"
    folder.mkdir()
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(folder)}}).execute()
    printed = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())]
    assert "FINISHED\n" in printed
    assert any(text.startswith("usage: main.py") for text in printed)
    assert list(service.home.glob("jobs/j*")) == []
