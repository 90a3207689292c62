"""The options of `edt-launch` that WMLA programs have."""

from dataclasses import dataclass
from pathlib import Path

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.core.errors import UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.plan import Wmla


@dataclass(frozen=True)
class Options:
    """What the command line says; None for what it does not."""

    wmla: bool = False
    framework: Framework | None = None
    data_dir: Path | None = None
    result_dir: Path | None = None
    output_dir: Path | None = None


def framework(name: str | None) -> Framework | None:
    """The framework of that name; None for none.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return None if name is None else Framework(name)
    except ValueError:
        raise UsageError(
            f"--framework {name!r:.40}: only PyTorch programs run here; give one of {', '.join(Framework)}"
        ) from None


def read(words: list[str], options: Options) -> tuple[list[str], Wmla | None]:
    """The words of the program, and how it is run; None if it is none for WMLA.

    A WMLA program's are its script, as seen from the folder that it runs in, and the script's arguments.

    Raises:
        UsageError: an option makes no sense, or a file is not there.
    """
    if not options.wmla:
        _check_none(options)
        return words, None
    if None not in (options.result_dir, options.output_dir) and options.result_dir != options.output_dir:
        raise UsageError(
            f"--result-dir {options.result_dir} and --output-dir {options.output_dir} are one folder: "
            "give --result-dir alone"
        )
    script = _script(words[0])
    if words[1:2] not in ([], ["--"]):
        raise UsageError(
            f"{words[1]!r} comes right after {words[0]}: put -- between a WMLA program and its arguments"
        )
    result_dir = options.result_dir or options.output_dir
    code = _code(script, result_dir)
    if result_dir is not None and result_dir.resolve() == code.resolve():
        raise UsageError(
            f"--result-dir {result_dir} is the folder of {script.name}, which is copied there: "
            "name another one, such as runs/first"
        )
    data_dir = options.data_dir
    if data_dir is not None and not data_dir.is_dir():
        raise UsageError(f"--data-dir {data_dir} is not a folder: name the one with the program's data")
    how = Wmla(
        options.framework or Framework.ELASTIC,
        code,
        None if data_dir is None else data_dir.absolute(),
    )
    return [str(script.absolute().relative_to(code)), *words[2:]], how


def _code(script: Path, result_dir: Path | None) -> Path:
    """The folder that a script runs in: of code that was submitted the present one, its model directory."""
    here, script = Path.cwd(), script.absolute()
    is_submitted = result_dir is not None and here.is_relative_to(RunDir(result_dir.resolve()).code.resolve())
    return here if is_submitted and script.is_relative_to(here) else script.parent


def _check_none(options: Options) -> None:
    given = {
        "--framework": options.framework,
        "--data-dir": options.data_dir,
        "--result-dir": options.result_dir,
    }
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise UsageError(f"{' and '.join(names)}: for WMLA programs alone; give --wmla, too")


def _script(word: str) -> Path:
    script = Path(word)
    if script.is_dir():
        raise UsageError(f"{word} is a folder: give the script in it, such as {script / 'main.py'}")
    if not script.is_file():
        raise UsageError(
            f"{word} is not a file: give the path of a program's script, such as model_dir/main.py"
        )
    if script.suffix != ".py":
        raise UsageError(f"{word} is no Python script: --wmla runs scripts (.py)")
    return script
