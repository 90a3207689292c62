import base64

import pytest
from starlette.datastructures import Headers

from edt_launch.adapters.wmla.rest.authenticator import Password, Token, proof_of


def basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


@pytest.mark.parametrize(
    "header, expected",
    [
        (basic(b"Admin:Admin"), Password("Admin", "Admin")),
        (basic(b"ann:a:b c"), Password("ann", "a:b c")),
        (basic("ann:wörd".encode()), Password("ann", "wörd")),
        (basic("ann:wörd".encode("latin-1")), Password("ann", "wörd")),
        (basic(b"ann:"), Password("ann", "")),
        (basic(b"ann"), None),
        ("Basic", None),
        ("Basic not/base64!", None),
        ("Bearer  edt_x ", Token("edt_x")),
        ("Bearer", None),
        ("Digest x", None),
        ("", None),
    ],
)
def test_authorization(header: str, expected: object) -> None:
    assert proof_of(Headers({"authorization": header, "x-auth-token": "other"})) == expected


def test_tokens_and_cookies() -> None:
    assert proof_of(Headers({"x-auth-token": "edt_x", "cookie": "edt_session=edt_y"})) == Token("edt_x")
    assert proof_of(Headers({"cookie": "a=b; edt_session=edt_y"})) == Token("edt_y", is_cookie=True)
    assert proof_of(Headers({"cookie": "edt_session="})) is None
    assert proof_of(Headers({"cookie": "\x01=;;;"})) is None
    assert proof_of(Headers({})) is None
