"""The questions before training definitions, experiments and projects are deleted."""

from collections.abc import Sequence

from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord, ProjectRecord
from edt_launch.service.web.asking import Question

MAX_NAMES = 10
"""Things that are named of those that keep something from being deleted."""


def definition_question(definition: DefinitionRecord, users: Sequence[str]) -> Question:
    """Whether to delete a training definition, which experiments of these names use."""
    line = "No experiment uses it. Its code is deleted, too; runs of it stay."
    if users:
        verb = "uses" if len(users) == 1 else "use"
        line = f"It cannot be deleted yet, since {_named('experiment', users)} {verb} it. Take it out first."
    back = f"/experiments/projects/{definition.project}"
    return Question("Delete", definition.name, [line], back, is_possible=not users)


def experiment_question(experiment: ExperimentRecord, runs: int, live: Sequence[str]) -> Question:
    """Whether to delete an experiment, and its runs with it; `live` are the jobs that have not ended."""
    line = {
        0: "Nothing has been run in it. Its training definitions stay.",
        1: "It is deleted with its run, whose job stays. So do its training definitions.",
    }.get(runs, f"It is deleted with its {runs} runs, whose jobs stay. So do its training definitions.")
    if live:
        named = ", ".join(live[:MAX_NAMES]) + (" and others" if len(live) > MAX_NAMES else "")
        one = len(live) == 1
        line = (
            f"It cannot be deleted yet, since {named} {'has' if one else 'have'} not ended."
            f" Stop {'it' if one else 'them'}, or wait."
        )
    return Question("Delete", experiment.name, [line], f"/experiments/{experiment.id}", is_possible=not live)


def project_question(
    project: ProjectRecord, experiments: Sequence[str], definitions: Sequence[str]
) -> Question:
    """Whether to delete a project, in which are experiments and training definitions of these names."""
    found = [
        _named(kind, names)
        for kind, names in (("experiment", experiments), ("training definition", definitions))
        if names
    ]
    line = "Nothing is in it."
    if found:
        verb = "is" if len(experiments) + len(definitions) == 1 else "are"
        line = (
            f"It cannot be deleted yet, since {' and '.join(found)} {verb} in it. Delete what is in it first."
        )
    back = f"/experiments/projects/{project.id}"
    return Question("Delete", project.name, [line], back, is_possible=not found)


def _named(kind: str, names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:MAX_NAMES]))
    more = " and others" if len(names) > MAX_NAMES else ""
    return f"the {kind}{'s' if len(names) > 1 else ''} {shown}{more}"
