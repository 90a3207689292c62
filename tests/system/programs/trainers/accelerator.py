"""Accelerate's loop, with its own checkpoints."""

import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from torch.utils.data import DataLoader, TensorDataset

from progress import note

RESULTS = Path(sys.argv[1])

config = ProjectConfiguration(str(RESULTS / "out"), automatic_checkpoint_naming=True, total_limit=2)
accelerator = Accelerator(cpu=True, project_config=config)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loader = DataLoader(TensorDataset(torch.arange(4096.0).unsqueeze(1) / 4096), 4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)


class Position:
    step = 0

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]


position = Position()
accelerator.register_for_checkpointing(position)
folder = RESULTS / "out" / "checkpoints"
saved = sorted(folder.glob("checkpoint_*"), key=lambda path: int(path.name.rpartition("_")[2]))
if saved:
    accelerator.load_state(str(saved[-1]))
    config.iteration = int(saved[-1].name.rpartition("_")[2]) + 1
while position.step < 1500:
    for (x,) in loader:
        accelerator.backward(((model(x) - 1) ** 2).mean())
        optimizer.step()
        optimizer.zero_grad()
        position.step += 1
        note(RESULTS, position.step)
        if position.step % 10 == 0:
            accelerator.save_state()
        if position.step == 1500:
            break
