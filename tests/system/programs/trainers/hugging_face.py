"""transformers' Trainer, with its own checkpoints."""

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from edt_hvd.torchrun import accumulation
from progress import note

RESULTS = Path(sys.argv[1])


class Samples(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([index / 4096])}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": ((self.layer(x) - 1) ** 2).mean()}


class Steps(TrainerCallback):
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        note(RESULTS, state.global_step)


options = TrainingArguments(
    str(RESULTS / "out"),
    per_device_train_batch_size=4,
    gradient_accumulation_steps=accumulation(total=8, per_device=4),
    max_steps=1500,
    save_steps=10,
    save_total_limit=2,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(Net(), options, train_dataset=Samples(), callbacks=[Steps()])
last = get_last_checkpoint(options.output_dir) if Path(options.output_dir).is_dir() else None
trainer.train(resume_from_checkpoint=last)
