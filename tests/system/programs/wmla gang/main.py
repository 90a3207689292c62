"""A process of a gang, or a single one: meets the others, and ends as its arguments say.

main.py [RANK WHAT]...: after they have met, the process of that rank ends with the code WHAT, or is to
`wait`, to come `later`, or to be killed (`kill`).
"""

import json
import os
import signal
import sys
import time

NAMES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "NODE_RANK",
    "MASTER_ADDR",
    "LOG_DIR",
    "CUDA_VISIBLE_DEVICES",
    "FRAME_WORK",
)
rank = int(os.environ.get("RANK", "0"))
print(json.dumps({name: os.environ.get(name) for name in NAMES}))
if "RANK" in os.environ:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1) * (rank + 1)
    dist.all_reduce(total)
    print("sum", int(total), flush=True)
    dist.destroy_process_group()  # torch may abort at the end of a process that still has one
what = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True)).get(str(rank), "0")
if what == "wait":
    time.sleep(600)
elif what == "later":
    time.sleep(1)
    print("later")
elif what == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
else:
    sys.exit(int(what))
