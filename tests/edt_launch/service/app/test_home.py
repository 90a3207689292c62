from pathlib import Path

import pytest

from edt_launch.service.app.home import Home


@pytest.mark.parametrize(
    "job",
    ["", ".", "..", "j", "../jaaaaaaaa", "jaaaaaaaa/", "jaaaaaaaa\n", "JAAAAAAAA", "jaaaaaaa1", "jaaaaaaaaa"],
)
def test_only_ids_become_folders(job: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        Home(Path("/edt")).job(job)
