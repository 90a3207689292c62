from edt_launch.service.bus import Topic
from edt_launch.service.jobs.states import State, Wanted
from world import NOW, World, post_job


def test_a_submitted_job_is_queued_and_the_loop_is_told(world: World) -> None:
    answer = post_job(world.ann, name="mine", min=1, max=4, environment={"A": "1"})
    assert answer.status_code == 201
    job = answer.json()
    assert (job["owner"], job["state"], job["size"], job["submitted"]) == ("ann", "queued", 0, NOW)
    assert world.ann.get(f"/jobs/{job['id']}").json() == job
    assert world.ann.get("/jobs").json() == {"jobs": [job], "next": None}
    assert world.bus.version(Topic.DESIRED_STATE) == 1
    assert (world.files(job["id"]).code / "train.py").is_file()


def test_submitting_twice_with_a_key_gives_one_job(world: World) -> None:
    first = post_job(world.ann, key="k")
    again = post_job(world.ann, key="k")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert post_job(world.ann, key="k", max=2).status_code == 409
    assert post_job(world.bob, key="k").status_code == 201


def test_listings_are_filtered_and_paged(world: World) -> None:
    ids = [world.submit(world.ann if n % 2 else world.bob)["id"] for n in range(5)]

    def listed(query: str) -> list[str]:
        return [job["id"] for job in world.ann.get(f"/jobs{query}").json()["jobs"]]

    assert listed("") == ids
    assert listed("?owner=ann") == ids[1::2]
    page = world.ann.get("/jobs?limit=3").json()
    assert [job["id"] for job in page["jobs"]] == ids[:3]
    assert listed(f"?limit=3&after={page['next']}") == ids[3:]
    world.go(ids[0], State.STOPPED)
    world.clock.now += 4000.0
    assert listed("") == ids[1:]
    assert listed("?all=1") == ids
    assert listed("?state=stopped,failed") == ids[:1]
    assert world.ann.get("/jobs?state=lost").status_code == 422


def test_bounds_and_weights_can_be_changed(world: World) -> None:
    job = world.submit(world.ann, max=4, allowed=[1, 2, 4])["id"]
    changed = world.ann.patch(
        f"/jobs/{job}", json={"max": 2, "priority": 3, "weight": 2.5, "name": "x", "time_limit": 60}
    ).json()
    assert changed["time_limit"] == 60.0
    assert (changed["max"], changed["priority"], changed["weight"], changed["name"]) == (2, 3, 2.5, "x")
    for wrong in ({"min": 3}, {"min": 3, "max": 3}, {"size": 3}):
        assert world.ann.patch(f"/jobs/{job}", json=wrong).status_code == 422


def test_what_is_said_of_a_job_finds_it_and_can_be_changed_after_its_end(world: World) -> None:
    job = world.submit(world.ann, tags=["b", "a", "b"])["id"]
    other = world.submit(world.bob, tags=["ab"], comment="warm-up of 100 steps")["id"]
    world.go(job, State.STOPPED)

    def found(query: str) -> list[str]:
        return [one["id"] for one in world.ann.get(f"/jobs?all=1&{query}").json()["jobs"]]

    assert world.ann.get(f"/jobs/{job}").json()["tags"] == ["a", "b"]
    assert (found("tag=B"), found("tag=ab"), found("text=100+STEPS")) == ([job], [other], [other])
    said = {"name": "x", "tags": ["best"], "comment": "diverged"}
    changed = world.ann.patch(f"/jobs/{job}", json=said).json()
    assert said.items() <= changed.items()
    refused = world.ann.patch(f"/jobs/{job}", json={"name": "y", "max": 4, "weight": 2})
    assert refused.json()["detail"] == f"{job} has stopped: max, weight cannot be changed any more"
    assert world.ann.patch(f"/jobs/{other}", json=said).status_code == 403


def test_priorities_may_be_for_administrators(world: World) -> None:
    limited = World(world.settings.home, world.store, highest_priority=5)
    assert post_job(limited.admin, priority=6).status_code == 201
    job = limited.submit(limited.ann, priority=5)["id"]
    assert limited.ann.patch(f"/jobs/{job}", json={"priority": 6}).status_code == 403


def test_only_an_ended_job_is_deleted_with_its_files(world: World) -> None:
    job = world.submit(world.ann)["id"]
    assert world.ann.delete(f"/jobs/{job}").status_code == 409
    world.go(job, State.STOPPED)
    assert world.ann.delete(f"/jobs/{job}").status_code == 204
    assert not world.files(job).root.exists()
    assert list(world.settings.paths.trash.iterdir()) == []
    assert world.ann.get(f"/jobs/{job}").status_code == 404


def test_stop_pause_and_resume_are_written_down(world: World) -> None:
    job = world.submit(world.ann)["id"]
    assert world.ann.post(f"/jobs/{job}/pause").json()["wanted"] == "pause"
    assert world.ann.post(f"/jobs/{job}/resume").json()["wanted"] == "run"
    assert world.ann.post(f"/jobs/{job}/stop").json()["wanted"] == "stop"
    assert world.store.jobs.get(job).wanted is Wanted.STOP
    assert world.ann.post(f"/jobs/{job}/resume").status_code == 409
    assert world.ann.post(f"/jobs/{job}/stop").status_code == 200
    world.go(job, State.STOPPED)
    assert world.ann.post(f"/jobs/{job}/stop").status_code == 200
    assert world.ann.post(f"/jobs/{job}/pause").status_code == 409


def test_work_that_cannot_be_saved_is_lost_by_force_only(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    since = world.clock.now - 754
    values = {"can_save": False, "running_since": since, "size": 1, "held": (("node1", ("0",)),)}
    world.store.jobs.record({job: values})
    lost = f"{job} has run for 0:12:34 and cannot save its work"
    refused = world.ann.post(f"/jobs/{job}/pause")
    assert refused.status_code == 409
    assert refused.json()["detail"] == f"{lost}: paused, it would begin again"
    assert f"edt pause --force {job}" in refused.json()["next"]
    assert world.admin.post("/hosts/node1/drain").json()["staying"] == [lost]
    assert world.store.jobs.get(job).would_lose
    assert world.admin.post("/hosts/node1/drain?force=1").json()["staying"] == []
    assert world.store.jobs.get(job).may_lose
    world.store.jobs.record({job: {"may_lose": False}})
    assert world.ann.post(f"/jobs/{job}/pause?force=1").json()["wanted"] == "pause"


def test_a_job_waits_for_others_that_can_succeed(world: World) -> None:
    first = world.submit(world.ann)["id"]
    later = world.submit(world.bob, after=[first, first], begin=NOW + 60)
    assert (later["after"], later["begin"]) == ([first], NOW + 60)
    assert "no job" in post_job(world.ann, after=["jaaaaaaaa"]).json()["detail"]
    world.go(first, State.STOPPED)
    refused = post_job(world.ann, after=[first])
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        f"after: {first} has stopped, and cannot succeed",
    )


def test_jobs_of_an_array_have_an_index(world: World) -> None:
    job = world.submit(world.ann, array_id="a" * 16, array_index=0, array_limit=2)
    assert (job["array_id"], job["array_index"], job["array_limit"]) == ("a" * 16, 0, 2)
    for lacking in ({"array_id": "a" * 16}, {"array_index": 1}, {"array_limit": 1}):
        assert post_job(world.ann, **lacking).status_code == 422
    assert post_job(world.ann, environment={"EDT_ARRAY_INDEX": "1"}).status_code == 422
