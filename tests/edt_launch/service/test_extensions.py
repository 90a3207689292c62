"""Other interfaces of the service, which are registered by name."""

import sys
from types import ModuleType

import pytest

from edt_launch.service import extensions


def test_pages_and_what_wmlas_clients_ask_are_served() -> None:
    pages, wmla = extensions.extensions()
    assert pages.serves("/logon")
    assert not pages.serves("/api/v1/jobs")
    assert wmla.serves("/platform/rest/deeplearning/v1/execs")
    assert not wmla.serves("/api/v1/jobs")


def test_another_one_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("another_extension")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(extensions, "EXTENSIONS", (module.__name__,))
    assert extensions.extensions.__wrapped__() == (module,)
