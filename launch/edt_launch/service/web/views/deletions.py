"""The questions before training definitions, experiments and projects are deleted."""

from collections.abc import Sequence

from edt_launch.service.database.project_records import DefinitionRecord, ExperimentRecord, ProjectRecord
from edt_launch.service.web.views.asking import Question


def definition_question(definition: DefinitionRecord, users: Sequence[str]) -> Question:
    """Who uses a training definition: the names of experiments."""
    if users:
        named = ", ".join(repr(name) for name in users)
        lines = [f"{named} {'uses' if len(users) == 1 else 'use'} it. Take it out of there first."]
    else:
        lines = ["No experiment uses it. Its code is deleted, too; runs of it stay."]
    address = f"/experiments/definitions/{definition.id}/delete"
    return Question("Delete", definition.name, lines, address, f"/experiments/projects/{definition.project}")


def experiment_question(experiment: ExperimentRecord, runs: int) -> Question:
    """What becomes of an experiment's runs."""
    line = {
        0: "Nothing has been run in it. Its training definitions stay.",
        1: "It is deleted with its run, whose job stays. So do its training definitions.",
    }.get(runs, f"It is deleted with its {runs} runs, whose jobs stay. So do its training definitions.")
    back = f"/experiments/{experiment.id}"
    return Question("Delete", experiment.name, [line], f"{back}/delete", back)


def project_question(project: ProjectRecord) -> Question:
    """Whether to delete a project."""
    back = f"/experiments/projects/{project.id}"
    line = "A project is deleted only if no experiment and no training definition is in it."
    return Question("Delete", project.name, [line], f"{back}/delete", back)
