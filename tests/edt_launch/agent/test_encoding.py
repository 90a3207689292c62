"""The messages between launcher and agent, as lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.agent import encoding, protocol
from edt_launch.agent.encoding import Reader, write

# What os.environ may have: bytes that are no UTF-8 are lone surrogates.
texts = st.text(st.characters(codec="utf-8")) | st.binary().map(
    lambda b: b.decode("utf-8", "surrogateescape")
)
environments = st.dictionaries(texts, texts, max_size=3)
workers = st.integers(0, 2**31)
orders = st.one_of(
    st.builds(protocol.Setup, st.lists(texts, max_size=3).map(tuple), environments, texts),
    st.builds(protocol.Start, workers, environments),
    st.builds(protocol.Kill, workers),
)
reports = st.one_of(
    st.builds(protocol.Started, workers, st.integers(1)),
    st.builds(protocol.Output, workers, st.sampled_from(["stdout", "stderr"]), st.binary()),
    st.builds(protocol.Exited, workers, st.integers(-64, 255)),
)


@given(
    st.one_of(
        st.tuples(st.just(protocol.Order), st.lists(orders, max_size=4)),
        st.tuples(st.just(protocol.Report), st.lists(reports, max_size=4)),
    ),
    st.integers(1, 100),
)
def test_messages_are_lines_of_ascii_that_arrive_wherever_a_read_ends(sent, size):
    kind, messages = sent
    data = b"".join(map(write, messages))
    assert data.isascii()
    assert data.count(b"\n") == len(messages)
    reader = Reader(kind)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert [message for piece in pieces for message in reader.feed(piece)] == messages


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"kind": "dance"}',
        '{"kind": "exited", "worker": 1, "exit_code": 0}',  # a report is no order
        '{"kind": "kill", "worker": "1"}',
        '{"kind": "kill", "worker": 1, "more": 2}',
        '{"kind": "start", "worker": 1, "environment": {"A": 1}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_order_is_an_error(content):
    with pytest.raises(protocol.ProtocolError):
        list(Reader(protocol.Order).feed(content.encode() + b"\n"))


@given(st.binary())
def test_no_bytes_do_worse_than_that(data):
    try:
        list(Reader(protocol.Report).feed(data + b"\n"))
    except protocol.ProtocolError:
        return


def test_a_line_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(encoding, "MAX_LINE", 1000)
    reader = Reader(protocol.Order)
    assert not list(reader.feed(b"x" * 1000))
    with pytest.raises(protocol.ProtocolError, match="longer than 1000 bytes"):
        list(reader.feed(b"x"))
