"""The handler as torchrun's agents call it: several in this process, at real stores."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousInfo,
    RendezvousParameters,
    rendezvous_handler_registry,
)

from edt_rendezvous import seat
from edt_rendezvous.handler import AllocationRendezvous


@pytest.fixture
def allocate(tmp_path) -> Callable[[int, int], Path]:
    """Replaces the allocation: a generation, and slots of this machine."""

    def write(generation: int, slots: int) -> Path:
        (tmp_path / "new").write_text(f"# edt allocation v1 generation={generation}\nlocalhost:{slots}\n")
        return (tmp_path / "new").rename(tmp_path / "allocation")

    return write


@pytest.fixture
def agent(tmp_path, monkeypatch) -> Iterator[Callable[..., AllocationRendezvous]]:
    """Makes the handler of another agent of the job on this machine."""
    monkeypatch.setattr(seat.tempfile, "gettempdir", lambda: str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]

    with contextlib.ExitStack() as at_end:

        def make(min_nodes: int = 1, **config: object) -> AllocationRendezvous:
            handler = rendezvous_handler_registry.create_handler(
                RendezvousParameters(
                    "edt", str(tmp_path / "allocation"), "id", min_nodes, 4, nproc=1, port=port, **config
                )
            )
            assert isinstance(handler, AllocationRendezvous)
            at_end.callback(handler.shutdown)
            return handler

        yield make


def start(handler: AllocationRendezvous) -> "Future[RendezvousInfo]":
    future: Future[RendezvousInfo] = Future()

    def run() -> None:
        try:
            future.set_result(handler.next_rendezvous())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the test's to see
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def meet(*handlers: AllocationRendezvous) -> list[tuple[int, int]]:
    """Rank and size of each, once they have met."""
    with ThreadPoolExecutor() as pool:
        infos = list(pool.map(lambda handler: handler.next_rendezvous(), handlers))
    assert {info.bootstrap_store_info.master_port for info in infos} == {infos[0].store.underlying_store.port}
    return [(info.rank, info.world_size) for info in infos]


def together(*handlers: AllocationRendezvous) -> list[int]:
    """What they answer torchrun, asked at the same time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda handler: handler.num_nodes_waiting(), handlers))


def waits_for(condition: Callable[[], bool]) -> None:
    """Returns once it holds; pytest's limit is the only one."""
    while not condition():
        threading.Event().wait(0.01)


def test_worlds_follow_the_allocation(allocate, agent):
    allocate(1, 1)
    first, second = agent(), agent()
    assert meet(first) == [(0, 1)]
    newcomer = start(second)
    assert first.num_nodes_waiting() == 0
    allocate(2, 2)
    waits_for(lambda: first.num_nodes_waiting() == 1)  # not before the newcomer waits
    assert meet(first) == [(0, 2)]
    assert newcomer.result().rank == 1

    allocate(3, 1)
    assert together(first, second) == [1, 1]
    leaver = start(second)
    assert meet(first) == [(0, 1)]
    waits_for(lambda: first._meeting.count_idle() == 1)
    first.shutdown()
    with pytest.raises(SystemExit) as ended:
        leaver.result()
    assert ended.value.code == 0


def test_all_begin_again_where_workers_of_one_have_failed(allocate, agent):
    allocate(1, 2)
    first, second = agent(), agent()
    assert meet(first, second) == [(0, 2), (1, 2)]
    again = start(second)
    waits_for(lambda: first.num_nodes_waiting() == 1)
    assert meet(first) == [(0, 2)]
    assert again.result().rank == 1
    first.set_closed()
    assert second.is_closed()
    with pytest.raises(RendezvousClosedError):
        second.next_rendezvous()


def test_an_idle_agent_takes_the_place_of_one_that_ended_with_its_store(allocate, agent):
    allocate(1, 1)
    first, idle = agent(), agent()
    assert meet(first) == [(0, 1)]
    waiting = start(idle)
    waits_for(lambda: first._meeting.count_idle() == 1)
    first._meeting.lose()
    first._seat.release()  # what the kernel does
    assert waiting.result().rank == 0


def test_a_file_that_makes_no_sense_changes_nothing_and_is_reported_once(allocate, agent, caplog):
    path = allocate(1, 1)
    handler = agent()
    meet(handler)
    path.write_text("# edt allocation v1 gener")
    assert [handler.num_nodes_waiting() for _ in range(3)] == [0, 0, 0]
    assert [record.message for record in caplog.records if "is it half written?" in record.message]
    assert len(caplog.records) == 1
