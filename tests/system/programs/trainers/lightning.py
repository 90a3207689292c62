"""Lightning's Trainer, with its own checkpoints."""

import sys
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

from edt_hvd.torchrun import devices_and_nodes
from progress import note

RESULTS = Path(sys.argv[1])


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return ((self.layer(batch[0]) - 1) ** 2).mean()

    def on_train_batch_end(self, *_: object) -> None:
        note(RESULTS, self.trainer.global_step)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.01)


trainer = pl.Trainer(
    accelerator="cpu",
    strategy="ddp",
    max_steps=1500,
    callbacks=[ModelCheckpoint(RESULTS / "out", save_last=True, every_n_train_steps=10)],
    enable_progress_bar=False,
    logger=False,
    **devices_and_nodes(),
)
loader = DataLoader(TensorDataset(torch.arange(4096.0).unsqueeze(1) / 4096), 4)
trainer.fit(Net(), loader, ckpt_path="last")
