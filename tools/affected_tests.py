"""Which tests of `make test-all` that `make test` leaves out cover a change.

``python tools/affected_tests.py`` prints their files, one a line, and on standard error why. A change is all
that differs from where the branch has left the main one; on the main branch itself, from the commit before.
Without such a commit, as in a shallow clone, nothing is selected. Standard library only.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAUNCHER = (
    "tests/system/test_failures.py",
    "tests/system/test_launchers.py",
    "tests/system/test_leaving.py",
    "tests/system/test_processes.py",
    "tests/system/test_resizes.py",
    "tests/system/test_restarts.py",
)
HOROVODRUN = ("tests/system/test_horovodrun.py",)
TRAINING = (
    "tests/system/test_exact.py",
    "tests/system/test_faults.py",
    "tests/system/test_patterns.py",
    "tests/system/test_resizes.py",
)
POOL = ("tests/system/test_pool.py", "tests/system/test_pool_killed.py", "tests/system/test_wmla_pool.py")
ATTACKS = ("tests/system/test_attacks.py", "tests/system/test_disk_and_clock.py")
DATABASES = ("tests/edt_launch/service/**/test_*.py", "tests/edt_launch/adapters/wmla/hypersearch/test_*.py")
SLURM = ("tests/system/test_slurm.py",)
WMLA = ("tests/system/test_wmla_*.py",)

TABLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    # The first line counts whose path the changed one begins with.
    ("edt_hvd/state/checkpoint/", ("tests/system/test_faults.py", "tests/system/test_restarts.py")),
    ("edt_hvd/debug/", ("tests/system/test_verify.py", "tests/system/test_wmla_programs.py")),
    (
        "edt_hvd/reduction/",
        ("tests/system/test_exact.py", "tests/system/test_launchers.py", "tests/system/test_patterns.py"),
    ),
    ("edt_hvd/world/horovodrun/horovod_world.py", HOROVODRUN),
    ("edt_hvd/warm/", ("tests/system/test_processes.py", "tests/system/test_resizes.py")),
    ("edt_hvd/wmla/", WMLA),
    ("edt_hvd/world/determinism.py", ("tests/system/test_exact.py",)),
    ("edt_hvd/world/", (*LAUNCHER, *TRAINING, *HOROVODRUN, "tests/system/test_torn_worlds.py")),
    ("edt_messages/", (*LAUNCHER, *TRAINING, *HOROVODRUN)),
    ("edt_hvd/", (*TRAINING, "tests/system/test_verify.py", "tests/examples/test_*.py")),
    ("launch/edt_launch/agent/", (*LAUNCHER, "tests/edt_launch/agent/test_agent.py")),
    ("launch/edt_launch/allocator/", ("tests/system/test_pool.py",)),
    ("launch/edt_launch/cli/", ()),
    ("launch/edt_launch/cluster/slurm", SLURM),
    ("launch/edt_launch/launcher/transports/srun.py", SLURM),
    ("launch/deploy/slurm/", SLURM),
    ("launch/deploy/", ()),
    ("launch/edt_launch/tools/demo/", ()),
    ("launch/edt_launch/tools/doctor/", ()),
    ("launch/edt_launch/launcher/horovodrun/", HOROVODRUN),
    ("launch/edt_launch/launcher/programs/horovodrun.py", HOROVODRUN),
    (
        "launch/edt_launch/service/jobs/loop/",
        (*POOL, *ATTACKS, *HOROVODRUN, "tests/edt_launch/service/jobs/loop/test_loop.py"),
    ),
    (
        "launch/edt_launch/service/web/",
        ("tests/browser/test_*.py", "tests/edt_launch/service/web/**/test_*.py"),
    ),
    ("launch/edt_launch/service/", (*POOL, *ATTACKS, *DATABASES, "tests/system/test_wmla_notebook.py")),
    ("launch/edt_launch/tools/simulate/", ()),
    ("launch/edt_launch/tools/verify/", ("tests/system/test_verify.py",)),
    ("launch/edt_launch/adapters/wmla/", (*WMLA, "tests/edt_launch/adapters/wmla/**/test_*.py")),
    ("launch/edt_launch/", LAUNCHER),
    (
        "native/horovod/",
        ("tests/system/test_exact.py", "tests/system/test_launchers.py", "tests/system/test_torn_worlds.py"),
    ),
    ("native/", ("tests/system/test_exact.py",)),
    ("uv.lock", ("tests/system/test_*.py", "tests/examples/test_*.py")),
    ("examples/recipes/", ("tests/system/test_recipes.py",)),
    ("examples/", ("tests/examples/test_*.py",)),
    ("benchmarks/attacked/", (*POOL, *ATTACKS)),
    ("tests/system/bystander.py", ATTACKS),
    ("tests/system/shims/", ATTACKS),
    ("tests/system/slurm_cluster.py", SLURM),
    ("tests/system/wmla_", WMLA),
    ("tests/system/pool_harness.py", POOL),
    ("tests/system/programs/wmla ", ("tests/system/test_wmla_launch.py",)),
    ("tests/system/programs/", (*LAUNCHER, *TRAINING)),
    ("tests/system/horovodrun_job.py", HOROVODRUN),
    ("tests/system/harness.py", (*LAUNCHER, *TRAINING)),
    ("tests/wmla_models/", ("tests/system/test_wmla_programs.py", "tests/system/test_wmla_script_once.py")),
)
"""What begins so is covered, beside `make test`, by these files."""

IN_FULL_RUN = (
    *("pytest.mark.full", "full("),
    # Fixtures of tests that `make test` runs on SQLite alone.
    *("database_url: str", "laboratory: Laboratory", "store: Store", "world: World"),
)

MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def covering(path: str) -> tuple[str, ...]:
    """The patterns of the test files that cover a changed file; a test file covers itself."""
    if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_"):
        return (path,)
    return next((tests for start, tests in TABLE if path.startswith(start)), ())


def is_in_full_run(file: Path) -> bool:
    """Whether a file has tests that `make test` leaves out."""
    text = file.read_text()
    return any(sign in text for sign in IN_FULL_RUN)


def select(changed: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """The test files for a change, each with the first changed file that asks for it."""
    selected: dict[str, str] = {}
    for path in changed:
        for pattern in covering(path):
            for file in sorted(root.glob(pattern)):
                if is_in_full_run(file):
                    selected.setdefault(str(file.relative_to(root)), path)
    return selected


def git(*words: str, root: Path = ROOT) -> str | None:
    """What a git command prints, without the line's end; None if it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def find_base(root: Path = ROOT) -> str | None:
    """The commit to compare with; None if it is not there."""
    head = git("rev-parse", "HEAD", root=root)
    for branch in MAIN:
        if (base := git("merge-base", "HEAD", branch, root=root)) is not None and base != head:
            return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1", root=root)


def changes_since(base: str, root: Path = ROOT) -> list[str]:
    """Files that differ from a commit, removed and new ones included."""
    different = git("diff", "--name-only", "-z", "--no-renames", base, root=root) or ""
    new = git("ls-files", "-z", "--others", "--exclude-standard", root=root) or ""
    return sorted({path for path in (different + new).split("\0") if path})


def main() -> None:
    """Print what is selected, and why."""
    base = find_base()
    if base is None:
        print("no earlier commit to compare with: nothing beside `make test`", file=sys.stderr)
        return
    changed = changes_since(base)
    selected = select(changed)
    print(
        f"{len(changed)} files differ from {base[:12]}: {len(selected)} test files beside `make test`",
        file=sys.stderr,
    )
    for file, path in sorted(selected.items()):
        print(f"  {file}  for {path}", file=sys.stderr)
        print(file)


if __name__ == "__main__":
    main()
