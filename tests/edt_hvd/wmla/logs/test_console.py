import re

from edt_hvd.wmla.logs.console import Console
from edt_hvd.wmla.results import MiniBatch


def test_the_lines_people_are_used_to() -> None:
    lines: list[str] = []
    console = Console(lines.append)
    console.begin()
    console.train(MiniBatch(64, 2.5, 12.5), 1, 0, 2)
    console.test(MiniBatch(10, 1.5, 50.0), 1, 0)
    console.end(1, 1)
    wanted = [
        r"--------START TRAINING--------",
        r"Timestamp \d{13}, Iteration 1",
        r"batches :1 2\.5",
        r"Iteration 1: tag train_accuracy, simple_value 0\.125",
        r"Iteration 1: tag train_loss, simple_value 2\.5",
        r"Iteration 1: tag test_accuracy, simple_value 0\.5",
        r"Iteration 1: tag test_loss, simple_value 1\.5",
        r"--------END TRAINING: completed 1 iterations --------",
        r"--------END TRAINING: completed epoch 1 in time [\d.]+ --------",
    ]
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(wanted, lines, strict=True)), lines
