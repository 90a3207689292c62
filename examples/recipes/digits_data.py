"""Scikit-learn's handwritten digits, and a small network for them: what the recipes have in common."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset


def digits() -> tuple[TensorDataset, TensorDataset]:
    """The images for training and those for tests, with their labels."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32).flatten(1) / 16
    labels = torch.tensor(found.target)
    is_test = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~is_test], labels[~is_test]), TensorDataset(images[is_test], labels[is_test])


def network() -> nn.Module:
    """A multilayer perceptron."""
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
