from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.files.plain_files import NoFileError
from edt_launch.service.files import log_search
from edt_launch.service.files.log_search import Hit, lines_at, search


def every(path: Path, text: str, most: int, reach: int) -> list[Hit]:
    found: list[Hit] = []
    after: int | None = 0
    while after is not None:
        hits, following = search(path, text, after, most, reach)
        assert len(hits) <= most
        assert following is None or following > after
        found += hits
        after = following
    return found


@given(
    st.lists(st.text("ab\u00e4(", max_size=6), max_size=30), st.text("aB(", min_size=1, max_size=2), st.data()
)
def test_every_line_with_the_text_is_found_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], text: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "searched.log"
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "BLOCK_BYTES", data.draw(st.integers(1, 40)))
        found = every(path, text, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 40)))
    expected, offset = [], 0
    for line in lines:
        if text.lower() in line.lower():
            expected.append(Hit(offset, line.encode()))
        offset += len(line.encode()) + 1
    assert found == expected


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(NoFileError):
        search(tmp_path / "link", "root")
    with pytest.raises(NoFileError):
        lines_at(tmp_path / "link", 0, 1, 1)
