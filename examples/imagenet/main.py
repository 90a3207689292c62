"""Train an image classifier with DistributedDataParallel, on a changing number of workers.

The shape is that of PyTorch Elastic's ImageNet program: a checkpoint is loaded at the start, and saved after
each epoch and every --save-every steps. The same script runs as each of:

    torchrun --standalone --nproc-per-node 2 examples/imagenet/main.py
    torchrun --nnodes 1:4 --rdzv-backend edt --rdzv-endpoint ALLOCATION examples/imagenet/main.py
    edt torchrun --nnodes 1:4 examples/imagenet/main.py

Images are scikit-learn's handwritten digits, those of a folder with `train` and `val`, or random (--dummy).
"""

import argparse
import os
import shutil
import time
from pathlib import Path

import torch
import torch.distributed as dist
from edt_hvd.torchrun import ElasticBatchSampler
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

parser = argparse.ArgumentParser(description="Train an image classifier; elastic, with checkpoints.")
parser.add_argument("data", metavar="DIR", nargs="?", help="folder with train/ and val/, else the digits")
parser.add_argument("--dummy", action="store_true", help="random images")
parser.add_argument("-a", "--arch", help="a model of torchvision, else a small network")
parser.add_argument("-j", "--workers", type=int, default=0, help="processes that load data")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("-b", "--batch-size", type=int, default=32, help="of one worker")
parser.add_argument("--total-batch-size", type=int, help="of all workers, in place of -b")
parser.add_argument("--lr", type=float, default=0.05, help="initial learning rate")
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--wd", dest="weight_decay", type=float, default=1e-4)
parser.add_argument("-p", "--print-freq", type=int, default=10, help="steps between two lines")
parser.add_argument("--save-every", type=int, default=10, help="steps between two checkpoints")
parser.add_argument("--delay", type=float, default=0.0, help="artificial seconds of work a step")
parser.add_argument("--checkpoint-file", type=Path, default=Path("checkpoint.pth.tar"))


@record
def main() -> None:
    args = parser.parse_args()
    device = choose_device()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    train_set, val_set, classes = load_data(args)
    sampler = ElasticBatchSampler(train_set, batch_size(args))
    train_loader = DataLoader(train_set, batch_sampler=sampler, num_workers=args.workers)
    share = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
    val_loader = DataLoader(share, args.batch_size, num_workers=args.workers)
    torch.manual_seed(0)
    model = DistributedDataParallel(network(args.arch, train_set[0][0].shape, classes).to(device))
    optimizer = SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)

    best = load_checkpoint(args.checkpoint_file, device, model, optimizer, sampler)
    say(f"=> epoch {sampler.epoch} at {sampler.position} samples, on {dist.get_world_size()} workers")
    for epoch in range(sampler.epoch, args.epochs):
        sampler.set_epoch(epoch)
        for group in optimizer.param_groups:
            group["lr"] = args.lr * 0.1 ** (epoch // 30)
        model.train()
        for step, (images, target) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(images.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sampler.advance()
            time.sleep(args.delay)
            if step % args.print_freq == 0:
                say(f"Epoch: [{epoch}][{step}/{step + len(sampler)}]  Loss {loss.item():.4f}")
            if sampler.epoch == epoch and (step + 1) % args.save_every == 0:
                save_checkpoint(args.checkpoint_file, model, optimizer, sampler, best)
        accuracy = validate(val_loader, model, device)
        say(f" * epoch {epoch + 1}  Acc@1 {accuracy:.3f}")
        is_best, best = accuracy > best, max(accuracy, best)
        save_checkpoint(args.checkpoint_file, model, optimizer, sampler, best, is_best)
    say(f"=> trained {sampler.epoch} epochs, best Acc@1 {best:.3f}")
    dist.destroy_process_group()


def batch_size(args: argparse.Namespace) -> int:
    """Samples of a step on one worker; with --total-batch-size, a step has the same samples on any number."""
    if args.total_batch_size is None:
        return args.batch_size
    total, workers = args.total_batch_size, dist.get_world_size()
    if total % workers:
        raise SystemExit(f"--total-batch-size {total}: {workers} workers cannot have equal shares")
    return total // workers


def say(text: str) -> None:
    """Print on rank 0."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def choose_device() -> torch.device:
    """This worker's GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def load_data(args: argparse.Namespace) -> tuple[Dataset, Dataset, int]:
    """Images for training, images for validation, and the number of classes."""
    if args.data is not None:
        from torchvision import datasets, transforms

        normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        crop = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
        flip = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()])
        train_set, val_set = (
            datasets.ImageFolder(
                Path(args.data) / name, transforms.Compose([change, transforms.ToTensor(), normalize])
            )
            for name, change in (("train", flip), ("val", crop))
        )
        return train_set, val_set, len(train_set.classes)
    if args.dummy:
        random = torch.Generator().manual_seed(0)
        images, labels = torch.randn(1280, 3, 64, 64, generator=random), torch.arange(1280) % 10
    else:
        from sklearn.datasets import load_digits

        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1).expand(-1, 3, -1, -1) / 16
        labels = torch.tensor(digits.target)
    is_val = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~is_val], labels[~is_val]), TensorDataset(images[is_val], labels[is_val]), 10


def network(arch: str | None, shape: torch.Size, classes: int) -> nn.Module:
    """A model of torchvision, or two convolutions."""
    if arch is not None:
        from torchvision import models

        return models.get_model(arch, num_classes=classes)
    return nn.Sequential(
        *(nn.Conv2d(shape[0], 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()),
        *(nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, classes)),
    )


@torch.no_grad()
def validate(loader: DataLoader, model: nn.Module, device: torch.device) -> float:
    """Percentage of right answers, over all workers."""
    model.eval()
    right = torch.zeros(2, device=device)
    for images, target in loader:
        answers = model.module(images.to(device)).argmax(1)  # shares differ in length: no collective in here
        right += torch.tensor([(answers == target.to(device)).sum(), len(target)], device=device)
    dist.all_reduce(right)
    return 100 * (right[0] / right[1]).item()


def load_checkpoint(
    file: Path, device: torch.device, model, optimizer, sampler: ElasticBatchSampler
) -> float:
    """Load the newest state that any node has; returns the best accuracy so far.

    Nodes may have folders of their own, and a new one has no file: the rank that is farthest sends its state.
    """
    saved = torch.load(file, map_location="cpu", weights_only=True) if file.exists() else {}
    position = torch.tensor([saved["sampler"][name] if saved else 0 for name in ("epoch", "position")])
    every = [torch.zeros_like(position) for _ in range(dist.get_world_size())]
    if device.type == "cuda":
        position, every = position.to(device), [each.to(device) for each in every]
    dist.all_gather(every, position)
    farthest = [each.tolist() for each in every]
    content = [saved]
    dist.broadcast_object_list(content, src=farthest.index(max(farthest)))
    if not content[0]:
        return 0.0
    model.load_state_dict(content[0]["state_dict"])
    optimizer.load_state_dict(content[0]["optimizer"])
    sampler.load_state_dict(content[0]["sampler"])
    return content[0]["best_acc1"]


def save_checkpoint(file: Path, model, optimizer, sampler, best: float, is_best: bool = False) -> None:
    """Write beside and rename, on the first worker of each node: a job may be cut at any time."""
    if os.environ["LOCAL_RANK"] != "0":
        return
    content = {
        "sampler": sampler.state_dict(),
        "best_acc1": best,
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    beside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    torch.save(content, beside)
    beside.rename(file)
    if is_best:
        shutil.copyfile(file, file.with_name("model_best.pth.tar"))


if __name__ == "__main__":
    main()
