import random

import storage
import table
import torch


class Points(torch.utils.data.Dataset):
    def __init__(self, numbers):
        self.numbers = list(numbers)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        storage.wait()
        rows = table.ROWS[self.numbers[index] * 100 :][:4]
        values = torch.tensor([row.value for row in rows])
        return values + random.gauss(0, 0.01), int(values.abs().sum() * 10) % 3
