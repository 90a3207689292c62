"""Sentences of different lengths, with loggers of the second generation."""

import argparse
import json
import os

import storage
import torch
import torch.nn as nn
from edtlogger import DriverLogger, WorkerLogger
from pyedt.fabric_model import FabricModel

WORDS = 20
KINDS = 4
print("sequences: the script begins")

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--seed", type=int, default=1)
args, _ = parser.parse_known_args()


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.kinds = torch.randint(KINDS, (count,), generator=generator)
        lengths = torch.randint(3, 9, (count,), generator=generator)
        self.sentences = [
            torch.randint(1 + int(kind) * 3, WORDS, (int(length),), generator=generator)
            for kind, length in zip(self.kinds, lengths, strict=True)
        ]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        storage.wait()
        return self.sentences[index], self.kinds[index]


def datasets():
    return Sentences(170, args.seed), Sentences(30, args.seed + 1)


def collate(samples):
    sentences, kinds = zip(*samples, strict=True)
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True), torch.stack(kinds)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 8, padding_idx=0)
        self.gru = nn.GRU(8, 12, batch_first=True)
        self.kind = nn.Linear(12, KINDS)

    def forward(self, sentences):
        _, last = self.gru(self.words(sentences))
        return self.kind(last[0])


def second_guess(outputs, labels):
    """How often the right answer is among the best two."""
    best = outputs.topk(2, dim=1).indices
    return (best == labels[:, None]).any(1).float().mean()


torch.manual_seed(args.seed)
net = Net()
fabric = FabricModel(
    net,
    datasets,
    nn.functional.cross_entropy,
    torch.optim.Adam(net.parameters(), lr=0.01),
    metrics=[second_guess],
    driver_logger_callback=DriverLogger(),
    worker_logger_callback=WorkerLogger(),
    fn_batch_collate=collate,
)
fabric.train(args.epochs, 8, effective_batch_size=32, validation_freq=3, checkpoint_freq=4)
with open(os.path.join(os.environ["RESULT_DIR"], "done.txt"), "x") as file:
    json.dump(sorted(name for name, _ in net.named_parameters()), file)
