import pytest

from edt_launch.service.db.engine import parse_url


@pytest.mark.parametrize(
    "url", ["mysql://host/name", "nonsense", "", "oracle://x", "sqlite://", "sqlite:///:memory:"]
)
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite|postgresql"):
        parse_url(url)
