"""What is told of trainers and samplers before a program starts that may be resized."""

import pytest

from edt_launch.launcher.programs.torchrun.advice import advice


@pytest.mark.parametrize(
    "source, told",
    [
        ("import lightning.pytorch as pl\npl.Trainer(devices=2)", "devices_and_nodes"),
        ("def main():\n    from pytorch_lightning import Trainer\n", "devices_and_nodes"),
        ("from transformers import Trainer\nTrainer()", "accumulation"),
        ("import transformers\ntransformers.Seq2SeqTrainer()", "accumulation"),
        ("from torchelastic.utils.data import *\nElasticDistributedSampler(data)", "ElasticBatchSampler"),
        ("from torch.utils import data\ndata.DistributedSampler(x)", "ElasticBatchSampler"),
    ],
)
def test_trainers_and_samplers_are_told_of(source: str, told: str) -> None:
    (said,) = advice(source)
    assert f"edt_hvd.torchrun.{told}" in said


@pytest.mark.parametrize(
    "source",
    [
        "import lightning, edt_hvd.torchrun\nlightning.Trainer(**edt_hvd.torchrun.devices_and_nodes())",
        "import transformers as t\nt.Trainer(steps=accumulation(total=4, per_device=1))",
        "from transformers import AutoModel\nAutoModel()",
        "from .lightning import Trainer\nTrainer()",
        "DistributedSampler(test)\nElasticBatchSampler(train, 8)",
        "import torch",
        "a mistake",
    ],
)
def test_nothing_is_told_of_others(source: str) -> None:
    assert advice(source) == []
