"""What a run of the tests leaves out, and how to have it."""

from collections.abc import Iterable

ADVICE = (
    (("not full",), "tests marked full were left out; to run them: make test-all"),
    (("chromium",), "tests of the pages were skipped: Chromium is missing; apt-get install chromium"),
    (("postgresql",), "tests on PostgreSQL were skipped: no server is installed; apt-get install postgresql"),
    (
        ("network namespaces",),
        "tests of several hosts were skipped: as root, apt-get install iproute2 openssh-server",
    ),
    (("ray's dashboard",), "tests inside a Ray cluster were skipped: pip install 'ray[default]'"),
    (("gpu", "cuda"), "tests on a GPU were skipped; where there is one: make gpu-check"),
)
"""Words in the reason of a skip, or in the marks asked for, and what they mean."""


def advice(reasons: Iterable[str]) -> list[str]:
    """A line for each kind of tests that were left out for these reasons."""
    said = "\n".join(reasons).lower()
    return [line for words, line in ADVICE if any(word in said for word in words)]
