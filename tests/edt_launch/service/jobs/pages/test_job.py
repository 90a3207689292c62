import html
import json
import re

from browser import browser, shown_again
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.states import State, Wanted
from world import NOW, World, tar

PROGRESS = '{{"event": "progress", "time": {0}.0, "step": {0}, "size": 2, "epoch": null, "values": {1}}}\n'


def test_the_owner_sees_everything(world: World) -> None:
    job = world.submit(world.ann, environment={"API_TOKEN": "s3cret", "A": "b"})["id"]
    world.files(job).launcher_log.write_text("[0] hello <b>\n[0] \x1b[31mred\x1b[0m\n[0] 10%\r[0] 20%\r\n")
    world.files(job).output.events.write_text('{"event": "world", "time": 1.0, "generation": 1, "size": 2}\n')
    (world.files(job).output.model / "a <b>.pt").write_bytes(b"weights")
    client = browser(world, "ann")
    assert "Waits for the next decision" in client.get(f"/jobs/{job}").text
    assert "<bdi>a &lt;b&gt;.pt</bdi>" in client.get(f"/jobs/{job}?tab=results").text
    definition = client.get(f"/jobs/{job}?tab=definition").text
    assert "python train.py" in definition
    assert "train.py</bdi>" in definition
    assert "s3cret" not in definition
    assert "2 workers training" in client.get(f"/jobs/{job}?tab=events").text
    logs = client.get(f"/jobs/{job}?tab=logs").text
    texts = ["[0] hello &lt;b&gt;", '[0] <span class="ansi-1">red</span>', "[0] 20%"]
    places = [f'href="/jobs/{job}?tab=logs&amp;at={offset}#line"' for offset in (0, 14, 31)]
    line = '<span><a class="place" {} tabindex="-1" aria-hidden="true"></a>{}\n</span>'
    assert "".join(line.format(*one) for one in zip(places, texts, strict=True)) in logs
    assert client.get(f"/jobs/{job}?tab=nothing").status_code == 422


def test_others_see_what_rest_lets_them_see(world: World) -> None:
    command, code = ["python", "s3cret.py"], tar({"s3cret.py": b""})
    job = world.submit(world.ann, name="digits", command=command, code=code)["id"]
    world.files(job).launcher_log.write_text("[0] s3cret\n")
    world.files(job).output.events.write_text(PROGRESS.format(1, '{"s3cret": 1.0}'))
    bob, admin = browser(world, "bob"), browser(world, "admin")
    page = bob.get(f"/jobs/{job}").text
    assert "digits" in page
    assert "s3cret" not in page
    assert "are for ann and administrators" in page
    assert f"/jobs/{job}/stop" not in page
    for tab in ("monitor", "logs", "events", "results", "definition"):
        answer = bob.get(f"/jobs/{job}?tab={tab}")
        assert (answer.status_code, "s3cret" in answer.text) == (403, False)
    assert bob.get(f"/jobs/{job}/series.csv").status_code == 403
    for tab in ("monitor", "logs", "definition"):
        assert "s3cret" in admin.get(f"/jobs/{job}?tab={tab}").text


def test_what_is_reported_is_a_table_and_a_file(world: World) -> None:
    job = world.submit(world.ann)["id"]
    lines = [PROGRESS.format(1, '{"<b>": 0.5, "=loss": 3}'), PROGRESS.format(3, '{"<b>": NaN}')]
    world.files(job).output.events.write_text("".join(lines))
    client = browser(world, "ann")
    page = client.get(f"/jobs/{job}?name=%3Cb%3E&x=training&log=1").text
    assert "<td>0.5</td>" in page
    best = '<strong>0.5<span class="visually-hidden"> (best)</span></strong>'
    row = f"<td>0.5</td><td>0.5</td><td>{best}</td><td>1</td>"
    assert f'<th scope="row"><bdi>&lt;b&gt;</bdi></th>{row}' in page
    csv = client.get(f"/jobs/{job}/series.csv?name=%3Cb%3E&name=%3Dloss")
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert csv.text.splitlines() == [
        "time,training,step,size,throughput,<b>,'=loss",
        "1.0,0.0,1,2,,0.5,3",
        "3.0,2.0,3,2,1.0,,",
    ]


def test_a_log_is_searched_and_a_line_found_is_shown_among_its_neighbours(world: World) -> None:
    job = world.submit(world.ann)["id"]
    lines = [f"[0] line {number:05}" for number in range(5000)]
    lines[2500] = "[0] an <i>Error</i>"
    world.files(job).launcher_log.write_text("\n".join(lines) + "\n")
    client = browser(world, "ann")
    page = client.get(f"/jobs/{job}?tab=logs&text=error").text
    offset = 2500 * 15
    assert f'at={offset}#line">[0] an &lt;i&gt;Error&lt;/i&gt;</a>' in page
    around = client.get(f"/jobs/{job}?tab=logs&at={offset}").text
    lines = re.sub("<a[^>]*></a>|<span>|</span>", "", around)
    target = '<span id="line" class="asked">[0] an &lt;i&gt;Error&lt;/i&gt;'
    assert f"[0] line 02499\n{target}\n[0] line 02501\n" in lines
    assert "[0] line 04999" not in around
    assert "data-follow" not in around


def test_a_log_that_is_no_file_is_empty(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.files(job).launcher_log.symlink_to(world.settings.paths.token)
    world.settings.paths.token.write_text("s3cret\n")
    page = browser(world, "ann").get(f"/jobs/{job}?tab=logs")
    assert page.status_code == 200
    assert "s3cret" not in page.text


def test_an_action_is_asked_about_and_done_for_its_owner_alone(world: World) -> None:
    job = world.submit(world.ann)["id"]
    client, other = browser(world, "ann"), browser(world, "bob")
    for action, wanted in (("pause", Wanted.PAUSE), ("resume", Wanted.RUN), ("stop", Wanted.STOP)):
        page, before = f"/jobs/{job}/{action}", world.store.jobs.get(job)
        assert (other.get(page).status_code, other.post(page).status_code) == (403, 403)
        assert world.store.jobs.get(job) == before
        assert f'action="{page}"' in client.get(page).text
        answer = client.post(page)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
        assert world.store.jobs.get(job).wanted is wanted


def test_a_job_is_changed_and_mistakes_keep_the_form(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=2)["id"]
    client = browser(world, "ann")
    answer = client.post(
        f"/jobs/{job}/set", data={"min": " 2 ", "max": "4", "priority": "", "weight": "0.5", "name": "mine"}
    )
    assert answer.status_code == 303
    changed = world.store.jobs.get(job)
    assert (changed.min, changed.max, changed.weight, changed.name) == (2, 4, 0.5, "mine")
    assert browser(world, "bob").post(f"/jobs/{job}/set", data={"max": "9"}).status_code == 403
    for data in ({"min": "5", "max": "4"}, {"min": "two"}):
        answer = client.post(f"/jobs/{job}/set", data={**data, "name": "<b>"})
        shown_again(answer, 422, 'value="&lt;b&gt;"')
    assert world.store.jobs.get(job) == changed


def seen_on(form: str) -> str:
    """What a form says that its job was like."""
    return html.unescape(re.findall('name="seen" value="([^"]*)"', form)[0])


def test_a_form_that_somebody_else_was_faster_than_changes_nothing(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=4)["id"]
    client = browser(world, "ann")
    seen = seen_on(client.get(f"/jobs/{job}/set").text)
    theirs = {**json.loads(seen), "priority": "3", "seen": seen}
    assert client.post(f"/jobs/{job}/set", data=theirs).status_code == 303
    given = {"min": "1", "max": "2", "priority": "0", "weight": "1", "name": "mine", "seen": seen}
    answer = client.post(f"/jobs/{job}/set", data=given)
    assert answer.status_code == 409
    assert "somebody else was first: Priority is 3 now, and was 0" in answer.text
    assert 'name="priority" value="3"' in answer.text, "what was left as it was follows the other's change"
    assert 'value="mine"' in answer.text
    assert (world.store.jobs.get(job).priority, world.store.jobs.get(job).max) == (3, 4)
    assert client.post(f"/jobs/{job}/set", data={**given, "seen": seen_on(answer.text)}).status_code == 303
    for nonsense in ("{", "[]", '{"min": [1]}'):
        assert client.post(f"/jobs/{job}/set", data={"max": "3", "seen": nonsense}).status_code == 422


def test_a_job_that_was_deleted_is_gone(world: World) -> None:
    job = world.submit(world.ann)["id"]
    world.store.history.add([AllocationRecord(job, "ann", NOW, 0, 1, (("node1", ("0",)),), "starts")])
    client, page = browser(world, "ann"), f"/jobs/{job}/delete"
    assert (client.get(page).status_code, client.post(page).status_code) == (409, 409)
    world.go(job, State.STOPPED)
    assert browser(world, "bob").post(page).status_code == 403
    assert "are deleted" in client.get(page).text
    assert client.post(page).headers["location"] == "/jobs"
    answer = client.get(f"/jobs/{job}")
    assert answer.status_code == 410
    assert f"the job {job} has been deleted" in answer.text
    assert world.ann.get(f"/jobs/{job}").status_code == 410
    assert world.ann.get("/jobs/jbbbbbbbb").status_code == 404


def test_a_failed_job_says_first_why_it_failed(world: World) -> None:
    job = world.submit(world.ann, name="digits")["id"]
    world.go(job, State.STARTING, State.RUNNING, State.FAILED)
    printed = "".join(f"  | <line {number}>\n" for number in range(30))
    first = "first failure: rank 1 on node1, exit code 1"
    failure = (
        f"the job failed\n{first}\n{printed}log: /jobs/launcher.log\ncause: KeyError: 'a' (train.py, line 14)"
    )
    world.store.jobs.record({job: {"failure": failure, "exit_code": 1}})
    page = browser(world, "ann").get(f"/jobs/{job}").text
    banner = page[page.index('aria-label="Failure"') : page.index("job-now")]
    assert "<bdi>KeyError: &#39;a&#39;</bdi>" in banner
    assert "<strong>train.py, line 14</strong>, rank 1 on node1, exit code 1" in banner
    assert f'href="/jobs/{job}?tab=logs&amp;rank=1#log"' in banner
    assert ("&lt;line 29&gt;" in banner, "&lt;line 10&gt;" in banner) == (True, False)
    assert "KeyError" not in browser(world, "bob").get(f"/jobs/{job}").text
    assert "KeyError" not in world.bob.get(f"/jobs/{job}/why").text
