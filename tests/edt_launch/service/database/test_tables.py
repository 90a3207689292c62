from dataclasses import fields

import pytest
from sqlalchemy import Table

from edt_launch.service.database import account_records, project_records, records, search_records, tables


@pytest.mark.parametrize(
    "table, record",
    [
        (tables.users, account_records.UserRecord),
        (tables.tokens, account_records.TokenRecord),
        (tables.shares, records.ShareRecord),
        (tables.hosts, records.HostRecord),
        (tables.jobs, records.JobRecord),
        (tables.transitions, records.TransitionRecord),
        (tables.allocations, records.AllocationRecord),
        (tables.searches, search_records.SearchRecord),
        (tables.trials, search_records.TrialRecord),
        (tables.projects, project_records.ProjectRecord),
        (tables.members, project_records.MemberRecord),
        (tables.definitions, project_records.DefinitionRecord),
        (tables.codes, project_records.CodeRecord),
        (tables.experiments, project_records.ExperimentRecord),
        (tables.trainings, project_records.TrainingRecord),
        (tables.runs, project_records.RunRecord),
    ],
)
def test_a_record_has_a_field_for_each_column(table: Table, record: type) -> None:
    columns = {column.key for column in table.columns} - {"password"}  # a hash that nobody else is to see
    assert columns == {field.name for field in fields(record)}
