from prometheus_client.parser import text_string_to_metric_families

from world import World


def test_figures_for_prometheus(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.store.jobs.record({job: {"size": 2, "held": (("node1", ("0", "1")),)}})
    world.ann.get(f"/jobs/{job}")
    world.ann.get("/jobs/nothing")
    headers = dict(world.ann.headers)
    text = world.anybody.get("/metrics", headers=headers).text
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["edt_jobs", "queued"] == 1
    assert values["edt_devices", "used"] == 2
    assert values["edt_devices", "free"] == 2
    assert values["edt_hosts", "up"] == 1
    assert values["edt_workers", "ann"] == 2
    assert values["edt_http_request_seconds_count", "/jobs/{job_id}", "200", "GET"] == 1
