"""Serves stores for `edt torchrun`: run as a script, so that nothing but torch is imported.

Standard input brings `open PORT`, where 0 stands for a free one, and `close PORT`. Answered is the port, or 0
if it cannot be used.
The process ends with its standard input, and all stores with it.
"""

import sys
from collections.abc import Iterable, Iterator


def serve(lines: Iterable[str]) -> Iterator[int]:
    """The answer to each line."""
    from torch._C._distributed_c10d import TCPStore
    from torch.distributed import DistNetworkError

    stores: dict[int, TCPStore] = {}
    for line in lines:
        verb, port = line.split()
        if verb == "open":
            try:
                store = TCPStore("127.0.0.1", int(port), is_master=True, wait_for_workers=False)
            except DistNetworkError:
                yield 0
                continue
            stores[store.port] = store
            yield store.port
        else:
            stores.pop(int(port), None)
            yield int(port)


if __name__ == "__main__":
    for answer in serve(sys.stdin):
        print(answer, flush=True)
