import pytest

from browser import browser
from edt_launch.service.states import State, Wanted
from world import World


def test_the_owner_sees_everything(world: World) -> None:
    job = world.submit(world.ann, name="digits", command=["python", "train.py"], max=4)["id"]
    world.files(job).launcher_log.write_text("[0] hello <b>\n[0] \x1b[31mred\x1b[0m\n[0] 10%\r[0] 20%\r\n")
    world.files(job).output.events.write_text('{"event": "world", "time": 1.0, "generation": 1, "size": 2}\n')
    page = browser(world, "ann").get(f"/jobs/{job}").text
    for text in (
        "python train.py",
        "[0] hello &lt;b&gt;\n[0] red\n[0] 20%\n",
        "2 workers training",
        "waits for the next decision",
    ):
        assert text in page
    assert "\x1b" not in page
    assert "[0] 10%" not in page


def test_others_see_what_rest_lets_them_see(world: World) -> None:
    job = world.submit(world.ann, name="digits", command=["python", "s3cret.py"])["id"]
    world.files(job).launcher_log.write_text("[0] s3cret\n")
    page = browser(world, "bob").get(f"/jobs/{job}").text
    assert "digits" in page
    assert "s3cret" not in page
    assert "are for ann and administrators" in page
    assert f"/jobs/{job}/stop" not in page
    assert "s3cret" in browser(world, "admin").get(f"/jobs/{job}").text


def test_one_rank_of_the_log(world: World) -> None:
    job = world.submit(world.ann, max=2)["id"]
    path = world.files(job).output.rank_log("1")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("only mine\n")
    client = browser(world, "ann")
    assert "only mine" in client.get(f"/jobs/{job}?rank=1").text
    assert "only mine" not in client.get(f"/jobs/{job}").text
    assert "Nothing has been printed yet" in client.get(f"/jobs/{job}?rank=0").text
    assert client.get(f"/jobs/{job}?rank=../1").status_code == 422


def test_a_log_that_is_no_file_is_empty(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.files(job).launcher_log.symlink_to(world.settings.paths.token)
    world.settings.paths.token.write_text("s3cret\n")
    page = browser(world, "ann").get(f"/jobs/{job}")
    assert page.status_code == 200
    assert "s3cret" not in page.text


@pytest.mark.parametrize(
    "action, wanted", [("stop", Wanted.STOP), ("pause", Wanted.PAUSE), ("resume", Wanted.RUN)]
)
def test_an_action_is_asked_about_and_done(world: World, action: str, wanted: Wanted) -> None:
    job = world.submit(world.ann)["id"]
    if action == "resume":
        world.store.jobs.set_wanted(job, Wanted.PAUSE)
    client = browser(world, "ann")
    assert f'action="/jobs/{job}/{action}"' in client.get(f"/jobs/{job}/{action}").text
    answer = client.post(f"/jobs/{job}/{action}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    assert world.store.jobs.get(job).wanted is wanted


@pytest.mark.parametrize("action", ["stop", "pause", "resume", "set"])
def test_nobody_touches_anothers_job(world: World, action: str) -> None:
    job = world.submit(world.ann)["id"]
    before = world.store.jobs.get(job)
    client = browser(world, "bob")
    assert client.get(f"/jobs/{job}/{action}").status_code == 403
    assert client.post(f"/jobs/{job}/{action}", data={"max": "9"}).status_code == 403
    assert world.store.jobs.get(job) == before


def test_what_has_ended_is_changed_no_more(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.go(job, State.STOPPED)
    client = browser(world, "ann")
    assert client.get(f"/jobs/{job}/pause").status_code == 409
    assert client.post(f"/jobs/{job}/pause").status_code == 409
    assert client.post(f"/jobs/{job}/set", data={"max": "9"}).status_code == 409


def test_a_job_is_changed_and_mistakes_keep_the_form(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=2)["id"]
    client = browser(world, "ann")
    answer = client.post(
        f"/jobs/{job}/set", data={"min": " 2 ", "max": "4", "priority": "", "weight": "0.5", "name": "mine"}
    )
    assert answer.status_code == 303
    changed = world.store.jobs.get(job)
    assert (changed.min, changed.max, changed.priority, changed.weight, changed.name) == (
        2,
        4,
        0,
        0.5,
        "mine",
    )
    for data in (
        {"min": "5", "max": "4", "name": "<b>"},
        {"min": "two", "name": "<b>"},
        {"priority": "10**9", "name": "<b>"},
    ):
        answer = client.post(f"/jobs/{job}/set", data=data)
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
        assert 'value="&lt;b&gt;"' in answer.text
    assert world.store.jobs.get(job) == changed


@pytest.mark.parametrize(
    "path", ["/jobs/jbbbbbbbb", "/jobs/..%2f..", "/jobs/x", "/jobs/jbbbbbbbb/stop", "/jobs/jbbbbbbbb/fly"]
)
def test_what_is_not_there_is_told(world: World, path: str) -> None:
    assert browser(world, "ann").get(path).status_code in (404, 422)
