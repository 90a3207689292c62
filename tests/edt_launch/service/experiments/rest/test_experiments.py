from lab import Lab, made, refused


def test_an_experiment_is_made_and_shown(lab: Lab) -> None:
    (lab.world.settings.data_folder / "mnist").mkdir()
    definition = lab.definition()["id"]
    shown = lab.experiment(definition, source="/mnist/", metric="accuracy", description="d")
    (training,) = shown["trainings"]
    sizes = {"distribution": "Elastic", "devices": 1, "min": 1, "max": 4}
    assert training == {"definition": definition, "name": "net", **sizes}
    assert (shown["source"], shown["metric"], shown["runs"]) == ("mnist", "accuracy", 0)
    answer = lab.ann.get(f"/experiments/{shown['id']}")
    assert (answer.json(), answer.headers["etag"]) == (shown, '"1"')
    (listed,) = lab.ann.get("/experiments?project=digits&name=first").json()["experiments"]
    assert listed == {name: value for name, value in shown.items() if name != "trainings"}
    assert lab.bob.get("/experiments").json()["experiments"] == []
    refused(lab.bob.get("/experiments?project=digits"), 403, "bob is no member")
    refused(lab.ann.get("/experiments/xaaaaaaaa"), 404, "there is no experiment")


def test_what_could_not_be_run_is_refused(lab: Lab) -> None:
    definition = lab.definition()["id"]
    for training, said in (
        ({"distribution": "Single", "max": 2}, "Single has one node"),
        ({"distribution": "Distributed", "min": 1, "max": 2}, "all of its nodes at once"),
        ({"min": 3, "max": 2}, "max: 2 is less than min, 3"),
        ({"definition": "daaaaaaaa"}, "there is no training definition 'daaaaaaaa'"),
    ):
        refused(lab.post_experiment(trainings=[{"definition": definition, **training}]), 422, said)
    refused(lab.post_experiment(source="../jobs"), 422, "without '..'")
    assert lab.ann.get("/experiments").json()["experiments"] == []


def test_definitions_of_other_projects_are_no_ones(lab: Lab) -> None:
    other = made(lab.bob.post("/projects", json={"name": "other"}))["id"]
    theirs = made(lab.post_definition(lab.bob, project=other))["id"]
    refused(lab.post_experiment(trainings=[{"definition": theirs}]), 422, "there is no training definition")


def test_it_is_changed_by_whoever_came_first(lab: Lab) -> None:
    lab.join("bob", "editor")
    first, second = lab.definition()["id"], lab.definition(name="two")["id"]
    experiment = lab.experiment(first)["id"]
    lab.experiment(name="other")
    path, seen = f"/experiments/{experiment}", {"If-Match": '"1"'}
    trainings = [{"definition": second}, {"definition": first, "max": 2}]
    shown = lab.bob.patch(path, json={"trainings": trainings}, headers=seen).json()
    assert [(one["name"], one["max"]) for one in shown["trainings"]] == [("two", 1), ("net", 2)]
    refused(lab.ann.patch(path, json={"command": ["x"]}, headers=seen), 409, "bob changed 'first' 0s ago")
    refused(lab.ann.patch(path, json={"name": "other"}), 409, "an experiment 'other' already")
    kept = lab.ann.patch(path, json={"command": ["true"], "objective": "maximize"}).json()
    assert (kept["command"], kept["objective"], kept["version"]) == (["true"], "maximize", 3)
    assert lab.ann.patch(path, json={"objective": None}).json()["objective"] is None


def test_a_viewer_changes_nothing(lab: Lab) -> None:
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.join("bob", "viewer")
    assert lab.bob.get(f"/experiments/{experiment}").status_code == 200
    takes = "that takes an editor"
    refused(lab.post_experiment(lab.bob, name="mine"), 403, takes)
    refused(lab.bob.patch(f"/experiments/{experiment}", json={"name": "x"}), 403, takes)
    refused(lab.bob.delete(f"/experiments/{experiment}"), 403, takes)
    refused(lab.bob.post(f"/experiments/{experiment}/runs", json={}), 403, takes)
