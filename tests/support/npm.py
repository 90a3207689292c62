"""Files of npm's packages, each fetched once into a cache."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

PATIENCE = 60.0
"""Seconds that fetching one may take."""


class NotFetchedError(Exception):
    """A package cannot be had here."""


def file_of(package: str, version: str, name: str) -> bytes:
    """The content of a file of a package; `NotFetchedError` without npm, or a registry that it reaches."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "edt" / "npm"
    archive = cache / f"{package}-{version}.tgz"
    if not archive.is_file():
        _fetch(f"{package}@{version}", archive)
    with tarfile.open(archive) as opened:
        found = opened.extractfile(f"package/{name}")
        assert found is not None
        return found.read()


def _fetch(package: str, archive: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetchedError("npm is not installed")
    folder = archive.with_name(f".{archive.name}.{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        command = [npm, "pack", "--silent", "--fetch-retries=0", f"--pack-destination={folder}", package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise NotFetchedError(f"npm pack {package}: {done.stderr.strip()[-300:]}")
        (made,) = folder.iterdir()
        made.replace(archive)
    except subprocess.TimeoutExpired:
        raise NotFetchedError(f"npm pack {package}: no answer in {PATIENCE:g} s") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
