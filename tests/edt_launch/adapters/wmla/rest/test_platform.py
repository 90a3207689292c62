from asking import Asking


def test_resource_plans_are_the_owners_tree(asking: Asking) -> None:
    assert asking.world.admin.put("/shares/lab", json={}).status_code == 200
    assert asking.world.admin.put("/shares/ann", json={"parent": "lab"}).status_code == 200
    tree = asking.modern().get("/resplans/resplantree").json()
    assert (tree["id"], tree["pid"]) == ("-", "")
    lab = next(node for node in tree["childTreeDto"] if node["id"] == "lab")
    assert lab == {"id": "lab", "pid": "-", "childTreeDto": [{"id": "ann", "pid": "lab", "childTreeDto": []}]}
    assert asking.modern().get("/resplans/resplan/lab").json() == lab
    answer = asking.modern().get("/resplans/resplan/nobody")
    assert (answer.status_code, answer.text) == (400, "Error 400: Resource plan 'nobody' not found.\n")


def test_the_platform_says_where_it_is(asking: Asking) -> None:
    conf = asking.modern().get("/conf").json()
    assert conf["DLI_DATA_FS"] == str(asking.world.settings.data_folder)
    assert asking.modern().get("/status").json()["status"] == "Running"
    assert asking.modern().get("/scheduler/kubernetesobjects?type=pod").json() == {"items": []}
