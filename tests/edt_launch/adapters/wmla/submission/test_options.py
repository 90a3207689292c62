import re
from pathlib import Path

from edt_launch.adapters.wmla.submission.options import FLAGS, IGNORED, OPTIONS, REFUSED, USED, Use, use_of

PAGE = Path(__file__).parents[5] / "docs" / "wmla-rest.md"


def test_every_option_has_one_use() -> None:
    assert len(OPTIONS) == len(USED) + len(IGNORED) + len(REFUSED)
    assert use_of("epochs") is None
    assert use_of("msd-podaffinity-preferred") is Use.IGNORED
    assert set(OPTIONS) >= FLAGS


def test_the_page_tells_of_every_option() -> None:
    told = [option.replace("...", "*") for option in re.findall(r"`--([\w*.-]+)", PAGE.read_text())]
    patterns = [re.escape(option).replace(r"\*", ".*") for option in told]
    for option in OPTIONS:
        assert any(re.fullmatch(pattern, option) for pattern in patterns), option
