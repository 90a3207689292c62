"""What launcher and agent may say when."""

from collections.abc import Sequence

import pytest

from edt_launch.agent.conversation import Conversation
from edt_launch.agent.protocol import (
    CODE,
    VERSION,
    Close,
    Code,
    Exited,
    Fetch,
    Fetched,
    Heartbeat,
    Hello,
    Kill,
    Left,
    List,
    Listed,
    Listen,
    Listening,
    Order,
    Output,
    Probe,
    Probed,
    ProtocolError,
    Put,
    Report,
    Reserve,
    Reserved,
    Setup,
    Start,
    Started,
    Stored,
    Swept,
    Want,
    Warm,
)

SETUP, FAR = Setup(("x",), {}, "/"), Setup(("x",), {}, "/", output="/out")
BEGUN = (SETUP, Hello(VERSION, 1))
START, STARTED, EXITED = Start(3, {}), Started(3, 1), Exited(3, 0)


def say(messages: Sequence[Order | Report]) -> Conversation:
    conversation = Conversation()
    for message in messages:
        if isinstance(message, Order):
            conversation.order(message)
        else:
            conversation.report(message)
    return conversation


@pytest.mark.parametrize(
    "messages",
    [
        (*BEGUN, START, Output(3, "stderr", b"no such program"), EXITED, Kill(3), Swept(0), Left(0, ())),
        (*BEGUN, START, STARTED, Start(2, {}), Output(3, "stdout", b"x"), EXITED, Started(2, 2)),
        (*BEGUN, Reserve(), Listen(), Listen(), Listening(1), Reserved(2), Listening(1), Warm(1, 0.1, ())),
        (*BEGUN, Probe(1, {}), Probe(2, {}), Probed(2, ()), Heartbeat(1.0), Heartbeat(2.0)),
        (FAR, Hello(VERSION, 1, "/there"), Code("/c", "d", 2), Want(CODE, 0), Want(CODE, 1), Stored(CODE)),
        (*BEGUN, Fetch("a", 0), Fetched("a", 0, b"x"), Fetch("a", 1), Fetched("a", 1, b"")),
        (*BEGUN, List(), Listed({}), Put("a", "d", 0), Stored("a", "full"), Put("a", "d", 0), Stored("a")),
        (Close(), Swept(0)),
    ],
)
def test_what_is_said_in_turn(messages: Sequence[Order | Report]) -> None:
    say(messages)


@pytest.mark.parametrize(
    "messages, reason",
    [
        ((START,), "Start before its Setup"),
        ((SETUP, START, START), "Start of worker 3, which was asked for already"),
        ((*BEGUN, BEGUN[1]), "a second Hello"),
        ((SETUP, Hello(VERSION, 1, "/there")), "a Hello with a folder"),
        ((*BEGUN, EXITED), "Exited of worker 3, which is not its own"),
        ((*BEGUN, Output(3, "stdout", b"")), "Output of worker 3, which is not its own"),
        ((*BEGUN, START, STARTED, EXITED, EXITED), "Exited of worker 3, which has ended already"),
        ((*BEGUN, START, EXITED, START), "Start of worker 3, which has ended already"),
        ((*BEGUN, START, Output(3, "../log", b"")), "a stream '../log': there are stdout and stderr"),
        ((*BEGUN, Heartbeat(2.0), Heartbeat(1.0)), "a Heartbeat of 1 after that of 2"),
        ((*BEGUN, Reserve(), Reserved(2), Reserved(2)), "Reserved without having been asked"),
        ((*BEGUN, Listen(), Listening(65536)), "Listening with port 65536: there are 1 to 65535"),
        ((*BEGUN, Fetch("a", 0), Fetched("a", 9, b"x")), "Fetched without having been asked"),
        ((*BEGUN, Put("a", "d", 0), Stored("b")), "Stored without having been asked"),
        ((*BEGUN, Put("a", "d", 0), Stored("a"), Want("a", 0)), "Want without having been asked"),
    ],
)
def test_what_is_repeated_reordered_or_said_of_others_is_refused(
    messages: Sequence[Order | Report], reason: str
) -> None:
    say(messages[:-1])
    with pytest.raises(ProtocolError, match=reason.replace(".", r"\.")):
        say(messages)
