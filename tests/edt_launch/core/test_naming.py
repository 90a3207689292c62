import pytest

from edt_launch.core.naming import script_name


@pytest.mark.parametrize(
    "words, name",
    [
        (["python", "src/train.py", "--lr", "1"], "train"),
        (["./run it.sh"], "run-it.sh"),
        (["python", "-m", "my.module"], "python"),
        (["///"], "job"),
        (["x" * 99], "x" * 40),
    ],
)
def test_names(words: list[str], name: str) -> None:
    assert script_name(words) == name
