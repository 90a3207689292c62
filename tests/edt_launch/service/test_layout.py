import re
from dataclasses import fields
from pathlib import Path

from edt_launch.service.jobs import answers, schemas
from edt_launch.service.jobs.records import JobRecord
from records import record

ROOT = Path(__file__).parents[3]

DERIVED = {"name", "note", "hosts", "urls", "eta", "share", "throughput", "loss"}
"""Fields of the answer that are not shown as the columns have them."""


def test_files_that_the_page_about_the_code_names_are_there() -> None:
    named = re.findall("`(launch/[^`]+)`", (ROOT / "docs/explanation/service-code.md").read_text())
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_column_is_shown_if_the_answer_has_a_line_of_its_name() -> None:
    names = schemas.Job.model_fields.keys() - DERIVED
    assert names <= {field.name for field in fields(JobRecord)}
    job = record(step=7, after=("jbbbbbbbb",), environment={"A": "b"})
    shown = answers.job(job)
    assert {name: getattr(shown, name) for name in names} == {
        name: list(value) if isinstance(value := getattr(job, name), tuple) else value for name in names
    }
