"""Other interfaces of the service, which are registered by name."""

from edt_launch.service import extensions


def test_pages_and_what_wmlas_clients_ask_are_served() -> None:
    wmla, pages = extensions.extensions()
    logon, jobs, execs = (
        {"path": path, "headers": []}
        for path in ("/logon", "/api/v1/jobs", "/platform/rest/deeplearning/v1/execs")
    )
    assert [pages.serves(logon), pages.serves(jobs)] == [True, False]
    assert [wmla.serves(execs), wmla.serves(jobs)] == [True, False]
