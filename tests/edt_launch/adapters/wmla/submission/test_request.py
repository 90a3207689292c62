import json
from typing import Any

import pytest

from edt_launch.adapters.wmla.submission.args import ArgumentsError
from edt_launch.adapters.wmla.submission.request import ExecRequest, read


def data(**content: Any) -> str:
    return json.dumps(content)


def test_newer_clients_put_everything_into_data() -> None:
    nodes = {"num_nodes": 2, "mem": {"size": "4g"}, "gpu": {"num_gpu": 3}, "cpu": {"units": 1}}
    sources = [{"type": "fs", "location": {"paths": "a/b"}}]
    args, found = read(
        ExecRequest("", data=data(args="--lr 1 ", hardwareSpec={"nodes": nodes}, dataSource=sources))
    )
    assert args == "--lr 1 "
    assert (found.workers, found.devices, found.data_path, found.script) == (2, 3, "a/b", ("--lr", "1"))


def test_the_argument_string_comes_first() -> None:
    request = ExecRequest(
        "--numWorker 4 --cs-datastore-meta data_path=mine",
        data=data(
            args="--numWorker 9",
            hardwareSpec={"nodes": {"num_nodes": 2}},
            dataSource=[{"location": {"paths": ["x"]}}],
        ),
    )
    args, found = read(request)
    assert args == request.args
    assert (found.workers, found.data_path, found.script) == (4, "mine", ())


def test_the_option_for_data_sources_is_the_same() -> None:
    _, found = read(ExecRequest("""--data-source '[{"type":"fs","location":{"paths":"d"}}]'"""))
    assert found.data_path == "d"
    assert read(ExecRequest("", data=data(hardwareSpec=None, dataSource=[])))[1].data_path is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "3",
        "null",
        "[" * 100_000,
        '{"args": 3}',
        '{"args": "\\ud800"}',
        '{"args": "a\\u0000"}',
        '{"hardwareSpec": 3}',
        '{"hardwareSpec": {"nodes": []}, "dataSource": 3}',
        '{"hardwareSpec": {"nodes": {"num_nodes": "many"}}}',
        '{"hardwareSpec": {"nodes": {"num_nodes": -1}}}',
        '{"hardwareSpec": {"nodes": {"gpu": {"num_gpu": 1.5}}}}',
        '{"dataSource": "x"}',
        '{"dataSource": [3]}',
        '{"dataSource": [{"type": "connection_asset"}]}',
        '{"dataSource": [{"location": {"paths": "a,b"}}]}',
        '{"dataSource": [{"location": {"paths": [3]}}]}',
        '{"dataSource": [{"location": 3}]}',
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsError):
        read(ExecRequest("", data=text))
