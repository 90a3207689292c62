import re
from pathlib import Path

from edt_launch.adapters.wmla.submission.args import FLAGS, IGNORED, OPTIONS, REFUSED, USED, is_platforms

PAGE = Path(__file__).parents[5] / "docs" / "wmla-rest.md"


def test_every_option_has_one_use() -> None:
    assert len(OPTIONS) == len(USED) + len(IGNORED) + len(REFUSED)
    assert not is_platforms("epochs")
    assert is_platforms("msd-podaffinity-preferred")
    assert set(OPTIONS) >= FLAGS


def test_the_page_tells_of_every_option() -> None:
    told = [option.replace("...", "*") for option in re.findall(r"`--([\w*.-]+)", PAGE.read_text())]
    patterns = [re.escape(option).replace(r"\*", ".*") for option in told]
    for option in OPTIONS:
        assert any(re.fullmatch(pattern, option) for pattern in patterns), option
