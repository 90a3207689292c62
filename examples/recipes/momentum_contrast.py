"""Learn without labels from a queue of earlier samples (MoCo).

The queue is changed once a step, after the loop over it, on all workers alike. So it is the same for every
number of workers, and a worker that joins receives it with the model.
"""

import copy

import edt_hvd
import torch
from digits_data import digits
from torch import nn
from torch.nn.functional import cross_entropy, normalize

EPOCHS, LENGTH, MOMENTUM, TEMPERATURE = 4, 512, 0.95, 0.2


class Contrast(nn.Module):
    """Two encoders, and the queue of what the second has made of earlier samples."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.register_buffer("queue", normalize(torch.randn(LENGTH, 16)))
        self.register_buffer("position", torch.tensor(0))

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, and the keys to put into the queue later."""
        queries = normalize(self.encoder(images + 0.1 * torch.randn_like(images)))
        with torch.no_grad():
            keys = normalize(self.key_encoder(images + 0.1 * torch.randn_like(images)))
        same = (queries * keys).sum(1, keepdim=True)
        logits = torch.cat([same, queries @ self.queue.T], dim=1) / TEMPERATURE
        return cross_entropy(logits, torch.zeros(len(images), dtype=torch.long, device=images.device)), keys

    @torch.no_grad()
    def follow(self, keys: torch.Tensor) -> None:
        """Move the second encoder, and put a step's keys in place of the oldest ones."""
        for mean, parameter in zip(self.key_encoder.parameters(), self.encoder.parameters(), strict=True):
            mean.lerp_(parameter, 1 - MOMENTUM)
        places = (self.position + torch.arange(len(keys), device=keys.device)) % LENGTH
        self.queue[places] = keys
        self.position.copy_((self.position + len(keys)) % LENGTH)


edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, _ = digits()
model = Contrast().to(edt_hvd.device())
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.encoder.parameters(), lr=0.1), model)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS:
        for step in state.loader:
            found = []
            for images, _ in step:
                loss, keys = model(images.to(edt_hvd.device()))
                step.backward(loss)
                found.append(keys.cpu())
            optimizer.step()
            # By rank, and so in the order of the batch: each worker has a contiguous part of it.
            keys = torch.cat([keys for part in edt_hvd.gather(found) for keys in part])
            model.follow(keys.to(edt_hvd.device()))
            state.commit()
        state.epoch += 1
        if edt_hvd.is_coordinator():
            print(f"epoch {state.epoch}: loss {state.loader.summary.loss:.3f}")


train(state)
