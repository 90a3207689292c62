import contextlib
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.adapters.wmla.submission.args import (
    FLAGS,
    IGNORED,
    MAX_ARGS_LENGTH,
    OPTIONS,
    REFUSED,
    Arguments,
    ArgumentsError,
    parse,
    words_of,
)


def test_a_notebooks_arguments() -> None:
    text = "--exec-start edtPyTorch --cs-datastore-meta type=fs,data_path=pytorch-mnist \
                   --model-dir /home/ann/pytorch_mnist/ --edt-options maxWorkers=2 \\\n \
                   --model-main\tpytorch_mnist_EDT.py \r\n  --epochs 10 "
    assert parse(text) == Arguments(
        framework="edtPyTorch",
        main="pytorch_mnist_EDT.py",
        folder="pytorch_mnist",
        most=2,
        data_path="pytorch-mnist",
        datastore="type=fs,data_path=pytorch-mnist",
        script=("--epochs", "10"),
    )


def test_options_that_mean_nothing_here_do_not_reach_the_script() -> None:
    for name in set(IGNORED) - FLAGS:
        assert parse(f"--lr 1 --{name} value --{name}=other --more").script == ("--lr", "1", "--more")


def test_what_would_make_another_job_is_refused() -> None:
    for name in REFUSED:
        with pytest.raises(ArgumentsError, match=f"--{name} is not possible here"):
            parse(f"--{name} -- python x.py")


def test_unknown_words_go_to_the_script_in_their_order() -> None:
    text = "one --epochs 10 --numWorker 2 -v --lr=0.1 --no-cuda two -- --numWorker 9 -- three"
    assert parse(text).script == (
        *("one", "--epochs", "10", "-v", "--lr=0.1", "--no-cuda", "two"),
        *("--numWorker", "9", "--", "three"),
    )


@pytest.mark.parametrize(
    "text, said",
    [
        ("--numWorker many", "--numWorker 'many'"),
        (f"--numWorker {'9' * 5000}", "--numWorker '999"),
        ("--cs-datastore-meta type=s3,data_path=x", "--cs-datastore-meta type='s3'"),
        ("--appName 'a\x1bb'", "--appName"),
        ("it's", "is not closed"),
        ("a\0b", "no program can be given"),
        ("x" * (MAX_ARGS_LENGTH + 1), "characters"),
    ],
)
def test_nonsense_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(ArgumentsError, match=said):
        parse(text)


words = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
breaks = st.sampled_from(["\t", "\n", "\\\n", " \\ \r\n", " \\n "])
gaps = st.lists(breaks, max_size=3).map(lambda parts: "".join([" ", *parts]))


@given(words, st.data())
def test_quoted_words_come_back_whatever_is_between_them(words: list[str], data: st.DataObject) -> None:
    text = "".join(data.draw(gaps) + shlex.quote(word) for word in words) + data.draw(gaps)
    assert words_of(text) == words


@given(st.text(max_size=200))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(ArgumentsError):
        assert all(isinstance(word, str) for word in parse(text).script)


PAGE = Path(__file__).parents[5] / "docs" / "reference" / "wmla-rest.md"


def test_the_page_tells_of_every_option() -> None:
    told = [option.replace("...", "*") for option in re.findall(r"`--([\w*.-]+)", PAGE.read_text())]
    patterns = [re.escape(option).replace(r"\*", ".*") for option in told]
    for option in OPTIONS:
        assert any(re.fullmatch(pattern, option) for pattern in patterns), option
