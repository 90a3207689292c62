import io
import os
import tarfile
from pathlib import Path

from edt_launch.service.files.archives.packing import members, pack


def test_folders_come_back(tmp_path: Path) -> None:
    model = tmp_path / "a model"
    (model / "train" / "deep").mkdir(parents=True)
    content = os.urandom(200_001)
    (model / "train" / "weights.pt").write_bytes(content)
    (model / "train" / "latest").symlink_to("weights.pt")
    (model / "train" / ("long" * 50)).write_text("x")
    os.mkfifo(model / "pipe")
    data = b"".join(pack([*members("model", model), *members("log", tmp_path / "missing")]))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = set(archive.getnames())
        assert names == {
            *("model", "model/train", "model/train/deep"),
            *("model/train/weights.pt", "model/train/latest", "model/train/" + "long" * 50),
        }
        weights = archive.extractfile("model/train/weights.pt")
        assert weights.read() == content
        assert archive.getmember("model/train/latest").linkname == "weights.pt"


def test_a_file_that_grows_meanwhile_is_cut_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 100_000)
    (tmp_path / "other").write_bytes(b"y")
    blocks = []
    for block in pack(members("job", tmp_path)):
        blocks.append(block)
        with (tmp_path / "log").open("ab") as file:
            file.write(b"more" * 10_000)
    with tarfile.open(fileobj=io.BytesIO(b"".join(blocks))) as archive:
        assert archive.getnames() == ["job", "job/log", "job/other"]
