from browser import browser, shown_again
from edt_launch.service.jobs.states import State, Wanted
from world import World


def running(world: World, name: str, *devices: str) -> str:
    job: str = world.submit(world.ann, name=name, max=4)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    size = len(devices)
    world.store.jobs.record({job: {"size": size, "target": size, "held": (("node1", devices),)}})
    return job


def test_several_jobs_are_asked_about_and_stopped(world: World) -> None:
    first, second, third = (
        running(world, name, at) for name, at in (("<b>", "0"), ("second", "1"), ("", "2"))
    )
    world.go(third, State.STOPPING, State.STOPPED)
    client = browser(world, "ann")
    query = "&".join(f"job={job}" for job in (first, second, third))
    page = client.get(f"/selected?action=stop&{query}").text
    assert "2 jobs" in page
    assert "&lt;b&gt;, second" in page
    assert "1 more that were chosen cannot be stopped" in page
    assert "No other job would change" in page
    assert f'value="{third}"' not in page
    answer = client.post("/selected", data={"action": "stop", "job": [first, second]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    assert {world.store.jobs.get(job).wanted for job in (first, second)} == {Wanted.STOP}


def test_nobody_but_its_owner_touches_a_job(world: World) -> None:
    job = running(world, "first", "0")
    before = world.store.jobs.get(job)
    bob, client = browser(world, "bob"), browser(world, "ann")
    for action in ("stop", "pause", "resume", "priority", "delete"):
        data = {"action": action, "job": [job], "priority": "1"}
        assert bob.get(f"/selected?action={action}&job={job}").status_code == 403
        assert bob.post("/selected", data=data).status_code == 403
        assert client.get(f"/selected?action={action}").status_code == 422
    assert world.store.jobs.get(job) == before
    given = {"action": "priority", "job": [job], "priority": "<b>"}
    shown_again(client.post("/selected", data=given), 422, "&#39;&lt;b&gt;&#39; is not possible")
    assert client.post("/selected", data=given | {"priority": "3"}).status_code == 303
    assert world.store.jobs.get(job).priority == 3
    assert client.get(f"/selected?action=fly&job={job}").status_code == 422
    logs = client.get(f"/selected/logs?job={job}").text
    assert f'href="/api/v1/jobs/{job}/logs" download="{job}.log"' in logs
    assert bob.get(f"/selected/logs?job={job}").status_code == 403


def test_what_was_done_of_a_selection_is_carried_out_and_audited_if_the_rest_fails(world: World) -> None:
    over, live = world.submit(world.ann, name="over")["id"], world.submit(world.ann, name="live")["id"]
    world.go(over, State.STARTING, State.SUCCEEDED)
    folder = world.files(over).root
    answer = browser(world, "ann").post("/selected", data={"action": "delete", "job": [over, live]})
    assert (answer.status_code, "1 of 2 jobs were deleted" in answer.text) == (207, True)
    assert not folder.exists()
    assert not list(world.settings.paths.trash.iterdir())
    (change, *_) = world.store.audit.newest(1)
    assert change.path == f"/selected delete {over} {live}"
