"""Horovod's worlds over Gloo: the members of a generation meet at a store of its own."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from edt_launch.core.system.ports import PortRange
from edt_launch.membership.protocol import Assignment, Worker

if TYPE_CHECKING:
    from edt_launch.worlds.gloo_store import Rendezvous

KEPT_GENERATIONS = 2
"""Generations whose stores are served: a late member of the last but one may still be asking."""


class GlooWorld:
    """Serves a store for each generation, on one of `ports`.

    `address_towards` is this machine's address for workers on given hosts.
    """

    def __init__(
        self, address_towards: Callable[[Iterable[str]], str], ports: PortRange | None = None
    ) -> None:
        self._address_towards = address_towards
        self._ports = ports
        self._token = secrets.token_hex(16)
        self._stores: list[Rendezvous] = []

    def variables(self, worker: Worker, hosts: Iterable[str]) -> dict[str, str]:
        """What Horovod looks for; the real rank, address and port come with an assignment."""
        # What takes time to import is there when the workers come, and does not hold them up.
        from horovod.runner.common.util.hosts import SlotInfo
        from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars

        import edt_launch.worlds.gloo_store  # noqa: F401

        slot = SlotInfo(worker.slot.host, worker.id, worker.slot.index, 0, 1, 1, 1)
        run = create_run_env_vars(self._address_towards(hosts), [""], 0, elastic=True)
        for name in ("HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"):  # by the address of each world
            del run[name]
        token = {"HOROVOD_RENDEZVOUS_TOKEN": self._token}
        return {name: str(value) for name, value in {**create_slot_env_vars(slot), **run, **token}.items()}

    def open(self, generation: int, assignments: Sequence[Assignment]) -> tuple[str, int]:
        """Serve a store; returns its address and port."""
        from edt_launch.worlds.gloo_store import Rendezvous

        # Where Horovod looks its rank up, besides the variables that the worker sets.
        ranks = {
            f"rank_and_size/{at.host}:{at.local_rank}": ",".join(
                map(str, (at.rank, at.size, at.local_rank, at.local_size, at.cross_rank, at.cross_size))
            ).encode()
            for at in assignments
        }
        address = self._address_towards(at.host for at in assignments)
        store = Rendezvous(address, self._token, ranks, self._ports)
        self._stores.append(store)
        while len(self._stores) > KEPT_GENERATIONS:
            self._stores.pop(0).close()
        return address, store.port

    def abort(self) -> None:
        """Have all that ask the newest store, or wait at it, stop."""
        if self._stores:
            self._stores[-1].void()

    def close(self) -> None:
        """Serve no store any more."""
        while self._stores:
            self._stores.pop().close()
