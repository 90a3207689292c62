from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.files.lines import LineSplitter


@given(
    st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b".")), max_size=8),
    st.binary(max_size=6).map(lambda line: line.replace(b"\n", b".")),
    st.integers(1, 9),
    st.booleans(),
)
def test_lines_are_whole_whatever_the_pieces(
    lines: list[bytes], rest: bytes, size: int, is_within: bool
) -> None:
    text = b"".join(line + b"\n" for line in lines) + rest
    splitter = LineSplitter(100, longest=4, is_within=is_within)
    found, offsets = [], []
    for start in range(0, len(text), size):
        for line in splitter.feed(text[start : start + size]):
            found.append(line)
            offsets.append(splitter.offset - 100)
    wanted = lines[1:] if is_within else lines
    assert found == [line for line in wanted if len(line) <= 4]
    assert [text[:offset].split(b"\n")[-2] for offset in offsets] == found
    assert (splitter.offset - 100, splitter.pending) == (len(text) - len(rest), len(rest))
    begun = [*lines, rest]
    assert splitter.skipped == sum(len(line) > 4 for line in (begun[1:] if is_within else begun))
