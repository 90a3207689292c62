"""What is told of trainers and samplers before a program starts that may be resized."""

from pathlib import Path

import pytest

from edt_launch.launcher.programs.torchrun.advice import advice, source_of


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


def test_a_checkpoint_that_lightning_does_not_choose_is_told_of() -> None:
    source = "import lightning\nt = lightning.Trainer(**devices_and_nodes())\nt.fit(m, ckpt_path={})"
    (said,) = advice(source.format("newest if newest.exists() else None"))
    assert 'give fit() ckpt_path="last"' in said
    assert advice(source.format('"last"')) == advice(source.format("None")) == []


def test_the_source_of_a_script_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import lightning")
    assert source_of(("python", "-u", str(tmp_path / "a.py"), "b.py")) == "import lightning"
    for command in (("python", "-u", "-m", "pkg"), ("./run.sh", "a.py"), ("python", "-u", "none.py"), ("x",)):
        assert source_of(command) == ""
