"""What the forms of experiments are sent with."""

from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from edt_launch.service.app.home import DEFINITION_ID
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.spec import ExperimentSpec, TrainingSpec
from edt_launch.service.web.form_fields import KeyField, Text, VersionField, parsed, words

Json = dict[str, Any]

ADD, RUN, SAVE, REMOVE, ATTRIBUTES = "add", "run", "save", "remove", "attributes"
"""What is done once the form is saved."""


MAX_ADDRESS = 8000
"""Characters of an address; proxies refuse longer ones."""


class DraftField(BaseModel):
    """Whether an experiment has only been made to have training definitions added."""

    draft: bool = False


class ExperimentFields(VersionField, KeyField, DraftField):
    """Of an experiment; `then` is what is done once it is saved, with which of its training definitions."""

    project: str = Field("", max_length=128)
    name: Text = ""
    description: Text = ""
    source: Text = ""
    is_global: str = Field("", alias="global", max_length=8)
    command: Text = ""
    metric: Text = ""
    objective: Text = ""
    then: str = Field(SAVE, pattern=f"^({ADD}|{RUN}|{SAVE}|({REMOVE}|{ATTRIBUTES}):{DEFINITION_ID})$")

    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        texts = ("name", "description", "source", "command", "metric")
        stripped = {name: getattr(self, name).strip() for name in texts}
        return {**stripped, "global": self.is_global, "objective": self.objective}

    @property
    def fields(self) -> Json:
        """The same as REST takes it; raises `InvalidError`."""
        values = self.values
        command = words(values["command"]) if self.is_global else []
        if self.is_global and not command:
            raise InvalidError("command: the global one is empty", "write it, or do not use it")
        fields = {name: values[name] for name in ("name", "description", "source", "metric")}
        return {**fields, "command": command, "objective": self.objective or None}

    @property
    def spec(self) -> ExperimentSpec:
        """What makes the experiment; raises `InvalidError`."""
        return parsed(ExperimentSpec, {"project": self.project, **self.fields})

    @property
    def written(self) -> str:
        """All of it in JSON."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True, exclude={"then", "key", "version"})

    @property
    def addition(self) -> str:
        """The form of its first training definition; raises `InvalidError` if too much is written."""
        address = f"/experiments/new/definition?{urlencode({'begun': self.written})}"
        if len(address) > MAX_ADDRESS:
            raise InvalidError(
                f"description and command take {len(address)} characters of an address, which has at most "
                f"{MAX_ADDRESS}",
                "save the experiment, and add training definitions afterwards",
            )
        return address

    @property
    def address(self) -> str:
        """The form of a new experiment in which that is written."""
        written = {"project": self.project, **{name: text for name, text in self.values.items() if text}}
        return f"/experiments/new?{urlencode(written)}"


def trainings_of(experiment: Json) -> list[TrainingSpec]:
    """What an experiment does with training definitions, as it would be sent."""
    return [
        TrainingSpec(
            definition=one["definition"], distribution=one["distribution"], min=one["min"], max=one["max"]
        )
        for one in experiment["trainings"]
    ]
