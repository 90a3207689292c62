from edt_launch.service.jobs import answers
from edt_launch.service.jobs.pages.views.job_tabs import definition
from records import record


def test_what_is_called_like_a_secret_is_left_out() -> None:
    values = {"WANDB_API_KEY": "abc", "EPOCHS": "3", "STORE": "postgresql://ann:a@b/c@host/name"}
    assert definition.definition(answers.job(record(environment=values)), {}).environment == [
        ("EPOCHS", "3"),
        ("STORE", "postgresql://ann:…@host/name"),
        ("WANDB_API_KEY", "…"),
    ]
    assert definition.definition(answers.job(record()), {"a": 1, "b": 2}, most=1).files_left_out == 1
