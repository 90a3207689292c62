"""Projects and experiments in a real browser."""

from edt_launch.service.jobs.states import State
from lab import CODE, Lab
from live_jobs import reported
from pages import Site, by_keyboard


def test_an_experiment_is_made_and_run_by_the_keyboard_alone(site: Site) -> None:
    (site.world.settings.data_folder / "mnist").mkdir()
    with site.page("ann", "/experiments") as page:
        by_keyboard(page, "link", "New project")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("digits")
        page.keyboard.press("Enter")
        by_keyboard(page, "link", "New experiment")
        page.get_by_label("Name").fill("first")
        page.get_by_label("Data folder").fill("mnist")
        assert page.get_by_role("button", name="Create and run").is_disabled()
        by_keyboard(page, "button", "Add training definition")
        page.get_by_role("button", name="Add", exact=True).wait_for()
        page.go_back()  # what is written stays, and nothing is made of it
        assert page.get_by_label("Data folder").input_value() == "mnist"
        assert site.world.ann.get("/experiments").json()["experiments"] == []
        by_keyboard(page, "button", "Add training definition")
        page.get_by_label("Name").fill("net")
        code = {"name": "code.tar.gz", "mimeType": "application/gzip", "buffer": CODE}
        page.get_by_label("Training source code").set_input_files([code])  # type: ignore[list-item]
        page.get_by_label("Framework").select_option("Horovod")
        page.get_by_label("Execution command").fill("python other.py")
        page.get_by_label("Maximum GPUs").fill("4")
        by_keyboard(page, "button", "Add")
        page.get_by_role("alert").get_by_text(
            "is not a file of the submitted code"
        ).wait_for()  # it stays chosen
        page.get_by_label("Execution command").fill("python train.py")
        page.keyboard.press("Tab")
        page.get_by_text("net starts at once with 4.").wait_for()
        page.get_by_label("Minimum GPUs").fill("5")
        page.keyboard.press("Tab")
        page.locator("#preview").get_by_text("min").wait_for()
        page.get_by_label("Minimum GPUs").fill("1")
        by_keyboard(page, "button", "Add")
        by_keyboard(page, "button", "Create and run")
        page.get_by_role("region", name="Runs").get_by_role("link", name="net").wait_for()
        (job,) = site.world.store.jobs.live()
        assert (job.owner, job.max) == ("ann", 4)
        by_keyboard(page, "link", "Delete")
        dialog.get_by_text(f"{job.id} has not ended").wait_for()
        assert dialog.get_by_role("button", name="Delete").count() == 0
        site.check_access(page)
        by_keyboard(page, "link", "Close")
        dialog.wait_for(state="hidden")
    assert [error for error in site.errors if "422" not in error] == []


def test_what_is_typed_stays_and_is_saved(site: Site) -> None:
    lab = Lab(site.world)
    lab.experiment(lab.definition()["id"])
    second = lab.experiment(name="second")["id"]
    with site.page("ann", f"/experiments/{second}/add") as page:
        page.get_by_label("Name").fill("typed")
        page.get_by_label("Existing").check()
        assert page.get_by_label("Name").is_hidden()
        page.get_by_label("Maximum GPUs").fill("9")
        page.get_by_label("Training definition").select_option(label="net")
        assert page.get_by_label("Maximum GPUs").input_value() == "4"
        page.get_by_label("New", exact=True).check()
        assert page.get_by_label("Name").input_value() == "typed"
        page.get_by_label("Existing").check()
        site.check_access(page)
        by_keyboard(page, "button", "Add")
        page.get_by_text("1 to 4 GPUs, Elastic").wait_for()
        name = page.get_by_label("Name", exact=True)
        name.fill("renamed")
        with page.expect_navigation():
            name.press("Enter")  # saves, and takes no definition out
        page.get_by_text("1 to 4 GPUs, Elastic").wait_for()
    assert lab.ann.get(f"/experiments/{second}").json()["name"] == "renamed"
    assert site.errors == []


def test_metrics_of_runs_are_panels_over_one_axis(site: Site) -> None:
    lab = Lab(site.world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    for rate in ("0.1", "0.2"):
        (run,) = lab.run(experiment, environment={"RATE": rate})
        lab.finish(run["job"])
        lines = [
            reported(step, loss=1 / step, **({"score": step} if step < 6 else {})) for step in range(1, 11)
        ]
        site.world.files(run["job"]).output.events.write_text("".join(lines))
    chart = "echarts.getInstanceByDom(document.getElementById('curves'))"
    spans = (
        f"{chart}.getModel().queryComponents({{mainType: 'xAxis'}}).map(one => one.axis.scale.getExtent())"
    )
    with site.page("ann", f"/experiments/{experiment}?tab=compare") as page:
        page.locator("#curves[data-panels='2'][data-curves='2'] canvas").wait_for()
        assert page.evaluate(spans) == [[1, 10], [1, 10]]
        names = page.evaluate(f"{chart}.getOption().series.map(one => one.name.replace(/ .j.*/, ''))")
        assert names == ["net: RATE 0.2", "net: RATE 0.1"] * 2
        page.get_by_role("button", name="Zoom in").click()
        first, second = page.evaluate(spans)
        assert first == second != [1, 10]
        page.get_by_label("loss").uncheck()
        page.locator("#curves[data-panels='1'] canvas").wait_for()
        assert page.url.count("metric=") == page.url.count("metric=score") == 1
        site.check_access(page)
    assert site.errors == []


def test_pages_follow_what_others_do(site: Site) -> None:
    lab = Lab(site.world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.join("bob", "viewer")
    with site.page("bob", "/experiments") as page:
        row = page.locator("tr", has=page.get_by_role("link", name="first", exact=True))
        row.get_by_role("cell", name="0", exact=True).wait_for()
        page.get_by_text("live", exact=True).wait_for()
        (run,) = lab.run(experiment)
        row.get_by_role("cell", name="1", exact=True).wait_for()
        lab.ann.post(f"/jobs/{run['job']}/stop")
        site.world.go(run["job"], State.STOPPED)
        page.goto(f"/experiments/{experiment}?tab=compare")
        page.get_by_text("live", exact=True).wait_for()
        for number in (1, 2):
            (run,) = lab.run(experiment)
            lab.finish(run["job"], loss=0.5)
            page.locator(f"#curves[data-curves='{number}'] canvas").wait_for()
        lab.ann.delete(f"/jobs/{run['job']}")
        page.locator("#curves[data-curves='1']").wait_for()
        # What happens while a page is loaded.
        page.route("**/api/v1/stream", lambda route: (lab.run(experiment), route.continue_()), times=1)
        page.goto(f"/experiments/{experiment}")
        page.get_by_role("region", name="Runs").get_by_text("queued").wait_for()
        for job in site.world.store.jobs.live():
            site.world.go(job.id, State.STOPPED)
        assert lab.ann.delete(f"/experiments/{experiment}").status_code < 300
        site.world.submit(lab.bob)
        page.get_by_text("there is no experiment").wait_for()
    assert [error for error in site.errors if "404" not in error] == []
