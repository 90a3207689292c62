"""Train a generator and a discriminator in turns: two passes over every step, each with its optimizer."""

import edt_hvd
import torch
from digits_data import digits
from torch import nn

EPOCHS, NOISE = 5, 16

edt_hvd.init(deterministic=True)
torch.manual_seed(0)
train_set, _ = digits()
generator = nn.Sequential(nn.Linear(NOISE, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid()).to(
    edt_hvd.device()
)
discriminator = nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)).to(edt_hvd.device())
g_optimizer = edt_hvd.DistributedOptimizer(torch.optim.Adam(generator.parameters(), lr=1e-3), generator)
d_optimizer = edt_hvd.DistributedOptimizer(
    torch.optim.Adam(discriminator.parameters(), lr=1e-3), discriminator
)
loader = edt_hvd.ElasticDataLoader(train_set, effective_batch_size=128, micro_batch_size=16)
state = edt_hvd.TorchState(
    generator=generator,
    discriminator=discriminator,
    g_optimizer=g_optimizer,
    d_optimizer=d_optimizer,
    loader=loader,
    epoch=0,
)
judge = nn.functional.binary_cross_entropy_with_logits


@edt_hvd.elastic
def train(state: edt_hvd.TorchState) -> None:
    while state.epoch < EPOCHS:
        for step in state.loader:
            for images, _ in step:  # first pass: the discriminator
                real, fake = discriminator(images), discriminator(generate(len(images)).detach())
                step.backward(judge(real, torch.ones_like(real)) + judge(fake, torch.zeros_like(fake)))
            d_optimizer.step()
            d_loss = step.loss
            for images, _ in step:  # second pass: the generator
                fake = discriminator(generate(len(images)))
                step.backward(judge(fake, torch.ones_like(fake)))
            g_optimizer.step()
            state.commit()  # once, after the last pass
        state.epoch += 1
        if edt_hvd.is_coordinator():
            print(f"epoch {state.epoch}: discriminator {d_loss:.3f}, generator {step.loss:.3f}")


def generate(count: int) -> torch.Tensor:
    """So many images; the noise follows from the loader's seed, whoever draws it."""
    images: torch.Tensor = generator(torch.randn(count, NOISE))
    return images


train(state)
