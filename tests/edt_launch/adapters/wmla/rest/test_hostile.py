"""Uploads that mean harm: each is refused in a line of text, and leaves nothing behind."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from asking import CODE, Asking, nothing_is_left, submit
from databases import sqlite_at
from examples import fewer
from world import World, member, tar, tar_of

ARGS = "--exec-start edtPyTorch --model-dir m"
MAIN = (member("m/main.py", size=3), b"pas")
BOUNDARY = "=_xyz"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
LINK_OUT = member("m/main.py", type=b"2", linkname="/etc/passwd")


@pytest.fixture
def asking(tmp_path: Any) -> Iterator[Asking]:
    """A service with narrow limits."""
    store = sqlite_at(tmp_path / "edt.db")
    limits = {"max_upload": 300_000, "max_unpacked": 1_000_000, "max_files": 50}
    yield Asking(World(tmp_path / "home", store, **limits))
    store.close()


UPLOADS = {
    "a path out of the folder": (tar({"../evil": b"x"}), 400),
    "a link out": (tar_of([MAIN, (member("m/l", type=b"2", linkname="../../x"), b"")]), 400),
    "a script that is a link out": (tar_of([(LINK_OUT, b"")]), 400),
    "a bomb": (gzip.compress(tar({"m/main.py": bytes(5_000_000)}, "w")), 413),
    "half a tar": (tar(CODE)[:-20], 400),
}


@pytest.mark.parametrize("what", UPLOADS)
def test_it_is_refused(asking: Asking, what: str) -> None:
    code, status = UPLOADS[what]
    answer = submit(asking.modern(), ARGS, code, sigName="dli")
    assert (answer.status_code, answer.text[:11]) == (status, f"Error {status}: ")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.count("\n") == 1
    assert nothing_is_left(asking.world)


def test_strangers_have_no_byte_of_a_body_parsed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        raise AssertionError("a stranger's body was parsed")

    monkeypatch.setattr("starlette.formparsers.MultiPartParser.__init__", parse)
    for headers in ({}, {"X-Auth-Token": "edt_wrong"}, {"Authorization": "Basic YW5uOndyb25n"}):
        answer = submit(asking.client(headers=headers), ARGS)
        assert (answer.status_code, answer.text[:11]) == (401, "Error 401: ")
    assert nothing_is_left(asking.world)


def multipart(name: str, file_name: str | None = None, rest: bytes = b"") -> bytes:
    disposition = f'form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name is not None else "")
    return f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + rest


END = f"\r\n--{BOUNDARY}--\r\n".encode()
GOOD = tar(CODE)


@pytest.mark.parametrize(
    "body",
    [
        multipart("file", "x.tar", GOOD),  # no end
        multipart("file", "x.tar", GOOD) + b"\r\n" + multipart("file", "x.tar", GOOD) + END,
        b"".join(multipart(f"f{n}", None, b"x") + b"\r\n" for n in range(2000)) + END,
        multipart("data", None, b"x" * 1_100_000) + END,
    ],
)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # starlette closes half a part late
def test_broken_forms_are_refused(asking: Asking, body: bytes) -> None:
    for kind in (FORM, "multipart/form-data", "text/plain"):
        headers = {"content-type": kind}
        answer = asking.modern().post("/execs", params={"args": ARGS}, content=body, headers=headers)
        assert answer.status_code in (400, 413)
        assert answer.text.startswith(f"Error {answer.status_code}: ")
    assert nothing_is_left(asking.world)


@pytest.mark.parametrize("name", ["../../evil.py", "a\0.py", ".py"])
def test_a_scripts_own_name_is_not_used(asking: Asking, name: str) -> None:
    body = multipart("file", name, b"pass") + END
    query = {"args": "--exec-start PyTorch"}
    answer = asking.modern().post("/execs", params=query, content=body, headers={"content-type": FORM})
    if answer.status_code == 200:
        (job,) = asking.world.store.jobs.page().jobs
        assert [path.name for path in asking.world.files(job.id).code.iterdir()] == ["main.py"]
    else:
        assert (answer.status_code, nothing_is_left(asking.world)) == (400, True)


@fewer(1 / 5, suppress_health_check=list(HealthCheck))
@given(args=st.text(max_size=300), code=st.binary(max_size=2000), name=st.text(max_size=30))
def test_nothing_makes_it_fail(asking: Asking, args: str, code: bytes, name: str) -> None:
    files = {"file": (name.encode("ascii", "ignore").decode() or "x", code)}
    query = {"args": f"{ARGS} {args}".encode(errors="replace").decode()}
    answer = asking.modern().post("/execs", params=query, files=files)
    assert answer.status_code in (200, 400, 413)
