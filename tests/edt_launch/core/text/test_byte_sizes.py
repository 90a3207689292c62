import pytest

from edt_launch.core.text.byte_sizes import byte_size


@pytest.mark.parametrize(
    "count, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1234, "1.2 kB"),
        (99_960, "100 kB"),
        (999_950, "1.0 MB"),
        (3.2e9, "3.2 GB"),
        (5e12, "5000 GB"),
    ],
)
def test_sizes_are_short_and_never_in_powers_of_ten(count: float, text: str) -> None:
    assert byte_size(count) == text
