import re

from browser import browser
from world import NOW, World, tar

FORM = {"name": "<b>digits", "command": "python 'train.py'", "min": "1", "max": "4", "priority": "1"}


def test_an_application_is_run_with_the_code_that_is_sent(world: World) -> None:
    client = browser(world, "ann")
    assert 'type="file"' in client.get("/console/run").text
    code = {"code": ("code.tar.gz", tar({"train.py": b"print()", "data": b"1" * 2**18}))}
    answer = client.post("/console/run", data=FORM, files=code)
    job = world.store.jobs.get(answer.headers["location"].removeprefix("/jobs/"))
    assert (job.owner, job.name, job.command) == ("ann", "<b>digits", ("python", "train.py"))
    assert (job.min, job.max, job.priority) == (1, 4, 1)
    assert (world.files(job.id).code / "train.py").read_bytes() == b"print()"
    again = client.post("/console/run", data=FORM | {"code_of": job.id}, files={"code": ("", b"")})
    assert again.status_code == 303
    newest = world.store.audit.newest(1)[0]
    assert newest.path == f"/console/run {again.headers['location'].removeprefix('/jobs/')}"


def test_advanced_fields_reach_the_job_and_an_array_is_many_jobs(world: World) -> None:
    client = browser(world, "ann")
    first = world.submit(world.ann)["id"]
    more = {"time": "1-02:00", "begin": "2h", "after": first, "grace": "5"}
    more |= {"restartable": "1", "no_preempt": "1"}
    code = {"code": ("code.tar.gz", tar({"train.py": b"print()"}))}
    answer = client.post("/console/run", data=FORM | more | {"array": "1-3%2"}, files=code)
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    jobs = [job for job in world.store.jobs.live() if job.id != first]
    assert [job.array_index for job in jobs] == [1, 2, 3]
    assert {(job.array_limit, job.time_limit, job.after, job.begin) for job in jobs} == {
        (2, 26 * 3600.0, (first,), NOW + 7200)
    }
    assert {(job.grace, job.restartable, job.preemptible) for job in jobs} == {(5.0, True, False)}


def test_a_form_that_is_sent_twice_runs_one_application(world: World) -> None:
    client = browser(world, "ann")
    (key,) = re.findall('name="key" value="([^"]+)"', client.get("/console/run").text)
    form = FORM | {"key": key, "command": "true"}
    first, second = (client.post("/console/run", data=form).headers["location"] for _ in range(2))
    assert first == second
    other = client.post("/console/run", data=form | {"name": "other"})
    assert (other.status_code, "was used for another job" in other.text) == (409, True)
    assert f'value="{key}"' not in other.text  # with a new one it can be sent again
    assert len(world.store.jobs.live()) == 1


def test_what_is_wrong_is_told_above_what_was_written(world: World) -> None:
    client = browser(world, "ann")
    for change, told in {
        "max": ("0", "max"),
        "time": ("soon", "is no time limit"),
        "command": ("python '", "close its quotes"),
        "code_of": ("jbbbbbbbb", "there is no job"),
        "path": ("/etc", "only administrators"),
    }.items():
        answer = client.post("/console/run", data=FORM | {change: told[0]})
        assert answer.status_code in (403, 422)
        assert told[1] in answer.text
        assert 'value="&lt;b&gt;digits"' in answer.text
    assert client.post("/console/run", data=FORM).status_code == 422  # the script is nowhere
    assert "service&#39;s machine" not in client.get("/console/run").text
    assert "service&#39;s machine" in browser(world, "admin").get("/console/run").text
    assert world.store.jobs.live() == []
