from edt_launch.service.api import views
from edt_launch.service.web.views.job_tabs import definition
from records import record


def test_what_is_called_like_a_secret_is_left_out() -> None:
    job = views.job(record(environment={"WANDB_API_KEY": "abc", "EPOCHS": "3"}))
    assert definition.definition(job, {}).environment == [("EPOCHS", "3"), ("WANDB_API_KEY", "…")]
    assert definition.definition(job, {"a": 1, "b": 2}, most=1).files_left_out == 1
