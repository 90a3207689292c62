import re
from html import unescape
from urllib.parse import parse_qs

import pytest

from browser import browser, shown_again
from edt_launch.service.experiments.pages.views import compared, run_table
from edt_launch.service.jobs.store import Jobs
from lab import Lab
from world import tar

DEFINITION = {"name": "<i>net", "framework": "Horovod", "command": "python train.py", "max": "4", "min": "1"}


def test_runs_are_shown_compared_run_again_and_saved(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    experiment = lab.experiment(lab.definition()["id"])["id"]
    page = f"/experiments/{experiment}"
    assert "net starts at once with 4." in ann.get(f"{page}/run").text
    assert ann.post(f"{page}/run").headers["location"] == page
    (first,) = lab.world.store.jobs.live()
    lab.finish(first.id, loss=0.5, accuracy=0.75)
    (second,) = lab.run(experiment, environment={"RATE": "<0.1>", "DECAY": "0.0123456789"})
    lab.finish(second["job"], loss=0.25, accuracy=0.5)
    text = ann.get(page).text
    assert re.findall(r"<strong>(.*?)&nbsp;★", text) == ["0.25", "0.75"]
    run = re.findall(r"/experiments/runs/(r\w+)/again", text)[0]
    compared = ann.get(f"{page}?tab=compare&metric=accuracy").text
    assert f"/api/v1/series?jobs={second['job']}%2C{first.id}&amp;name=accuracy" in compared
    assert '<bdi title="0.0123456789">0.01235</bdi>' in compared
    assert "DECAY 0.01235" in compared
    assert ("$RATE" in compared, "&lt;0.1&gt;" in compared) == (True, True)
    assert "Distributed training type" in ann.get(f"{page}?tab=overview").text
    assert "starts at once" in ann.get(f"/experiments/runs/{run}/again").text
    assert ann.post(f"/experiments/runs/{run}/again").headers["location"] == page
    (again,) = lab.world.store.jobs.live()
    assert again.environment == {**first.environment, "RATE": "<0.1>", "DECAY": "0.0123456789"}
    assert "Name of the training definition" in ann.get(f"/experiments/runs/{run}/save").text
    assert ann.post(f"/experiments/runs/{run}/save", data={"name": "net"}).status_code == 409
    location = ann.post(f"/experiments/runs/{run}/save", data={"name": "kept"}).headers["location"]
    assert "kept" in ann.get(location).text
    assert ann.delete(page).status_code == 405


def test_each_chosen_metric_has_a_panel_the_first_six_at_first(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = browser(lab.world, "ann")
    experiment = lab.experiment(lab.definition()["id"], metric="h")["id"]
    chosen = lab.run(experiment)[0]
    lab.finish(chosen["job"], **dict.fromkeys("abcdefgh", 0.5))
    lab.finish(lab.run(experiment)[0]["job"], **dict.fromkeys("xyz", 0.5))
    page = f"/experiments/{experiment}?tab=compare"

    def drawn(query: str) -> tuple[list[str], int]:
        """The metrics that are drawn, and the number of runs."""
        (url,) = re.findall(r'data-url="([^"]*)"', ann.get(f"{page}{query}").text)
        asked = parse_qs(url.replace("&amp;", "&").partition("?")[2])
        return asked.get("name", []), len(asked["jobs"][0].split(",")) if asked else 0

    assert drawn("") == (["h", *"abcde"], 1)
    assert drawn("&metric=z&metric=b&metric=z&metric=") == (["z", "b"], 2)
    assert drawn(f"&metric=z&run={chosen['id']}") == ([], 0)
    monkeypatch.setattr(compared, "MAX_CURVES", 1)  # what nobody has who is drawn is not fetched
    assert drawn("&metric=z&metric=b") == (["z"], 1)
    many = ann.get(page + "".join(f"&metric={name}" for name in "abcdefghijklmnopq"))
    shown_again(many, 422, "17 metrics are chosen, but at most 16 can be drawn")


def test_runs_are_a_table_that_is_sorted_and_filtered_with_chosen_columns(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = browser(lab.world, "ann")
    experiment = lab.experiment(lab.definition()["id"])["id"]
    page = f"/experiments/{experiment}"
    jobs = []
    for rate, loss in (("10", 0.5), ("0.1", 0.125), ("9", 0.25)):
        (run,) = lab.run(experiment, environment={"RATE": rate})
        lab.world.clock.now += 60
        lab.finish(run["job"], loss=loss)
        jobs.append(run["job"])
    first, best, last = jobs
    said = {"tags": ["best", "i"], "comment": "<b>keep</b>"}
    assert lab.ann.patch(f"/jobs/{best}", json=said).status_code == 200

    def shown(query: str) -> list[str]:
        return re.findall(r'<a href="/jobs/(\w+)"><bdi>', ann.get(f"{page}?{query}").text)

    assert shown("") == [last, best, first]
    assert shown("sort=metric:loss") == [best, last, first]
    assert shown("sort=-metric:loss") == [first, last, best]
    assert shown("sort=parameter:$RATE") == [best, last, first]
    assert shown("sort=nonsense") == [last, best, first]
    assert shown("find=tag:BEST") == [best]
    text = ann.get(f"{page}?find=tag:best&column=comment&column=parameter:$RATE&column=nonsense").text
    heads = re.findall(r'<th scope="col"[^>]*><a href="([^"]*)">([^ <]*)', text)
    assert [name for _, name in heads] == ["Name", "Comment", "$RATE"]
    assert "find=tag%3Abest&amp;column=comment" in heads[1][0]
    assert "<bdi>&lt;b&gt;keep&lt;/b&gt;</bdi>" in text
    assert "<bdi>0.1</bdi>" in text
    monkeypatch.setattr(run_table, "PAGE", 2)
    assert shown("sort=metric:loss") == [best, last]
    assert shown("sort=metric:loss&after=2") == shown("sort=metric:loss&after=100") == [first]
    assert "Previous runs" in ann.get(f"{page}?after=100").text
    read, some = list[int](), Jobs.some
    monkeypatch.setattr(Jobs, "some", lambda *given: read.append(len(given[1])) or some(*given))
    assert shown("sort=-metric:loss") == [first, last]
    assert max(read) == 2  # the others' values are known, and nothing else of them is shown


@pytest.mark.parametrize("question", ["again", "edit"])
def test_a_form_that_is_sent_twice_starts_once(lab: Lab, question: str) -> None:
    ann = browser(lab.world, "ann")
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    address, form = f"/experiments/runs/{run['id']}/again", dict[str, str]()
    if question == "edit":
        address = f"/experiments/{experiment}/edit"
        form = {"name": "first", "description": "changed", "version": "1", "then": "run"}
    before = len(lab.world.store.jobs.live())
    (form["key"],) = re.findall('name="key" value="([^"]+)"', ann.get(address).text)
    for _ in range(2):
        answer = ann.post(address, data=form)
        assert answer.status_code == 303, answer.text
    assert len(lab.world.store.jobs.live()) == before + 1


def test_a_viewer_looks_and_strangers_do_not(lab: Lab) -> None:
    bob = browser(lab.world, "bob")
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.run(experiment)
    page = f"/experiments/{experiment}"
    assert bob.get(page).status_code == 403
    lab.join("bob", "viewer")
    text = bob.get(page).text
    assert ("Runs in total" in text, "/run" in text, "Edit" in text) == (True, False, False)
    assert "New experiment" not in bob.get(f"/experiments/projects/{lab.project}").text
    posted = [
        bob.post(f"{page}/{form}", data={**DEFINITION, "then": "save"}) for form in ("run", "add", "edit")
    ]
    got = [
        bob.get(form) for form in (f"{page}/edit", f"{page}/add", f"/experiments/new?project={lab.project}")
    ]
    for answer in (*posted, *got):
        assert (answer.status_code, "that takes an editor" in answer.text) == (403, True), answer.url
    assert bob.post(f"{page}/preview", data=DEFINITION).status_code == 403


def test_an_experiment_is_made_with_its_first_definition(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    form = {"project": lab.project, "name": "<b>first", "description": "d", "then": "add"}
    text = ann.get(ann.post("/experiments/new", data=form).headers["location"]).text
    (begun,) = (unescape(one) for one in re.findall('name="begun" value="([^"]+)"', text))
    (back,) = re.findall('href="(/experiments/new[?][^"]+)">Cancel', text)
    assert 'value="&lt;b&gt;first"' in ann.get(unescape(back)).text
    place, files = "/experiments/new/definition?tab=new", {"code": ("code.tar", tar({"train.py": b""}))}
    wrong = {**DEFINITION, "command": "python other.py", "begun": begun}
    shown_again(ann.post(place, data=wrong, files=files), 422, "other.py", 'name="begun"')
    assert lab.ann.get("/definitions").json()["definitions"] == []
    assert lab.ann.get("/experiments").json()["experiments"] == []
    lab.join("bob", "viewer")
    assert browser(lab.world, "bob").post(place, data=DEFINITION | {"begun": begun}).status_code == 403
    assert ann.post(place, data=DEFINITION | {"begun": "x"}).status_code == 422
    location = ann.post(place, data=DEFINITION | {"begun": begun}, files=files).headers["location"]
    (experiment,) = lab.ann.get("/experiments").json()["experiments"]
    assert location == f"/experiments/{experiment['id']}/edit?draft=1"
    said = "an experiment &#39;&lt;b&gt;first&#39; already"
    given = DEFINITION | {"name": "other", "begun": begun}
    shown_again(ann.post(place, data=given, files=files), 409, said)
    assert len(lab.ann.get("/definitions").json()["definitions"]) == 1
    long = form | {"name": "long", "command": "python " + "x" * 9000, "global": "1"}
    shown_again(ann.post("/experiments/new", data=long), 422, "at most 8000", "save the experiment")


def test_the_second_of_two_editors_is_told_who_came_first(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    lab.join("bob", "editor")
    experiment = lab.experiment()["id"]
    lab.bob.patch(f"/experiments/{experiment}", json={"description": "b", "command": ["python", "b c"]})
    edit = f"/experiments/{experiment}/edit"
    given = {"name": "first", "description": "a", "then": "save", "version": "1"}
    wrong = ann.post(edit, data=given | {"name": ""})
    shown_again(wrong, 422, 'name="version" value="1"')
    answer = ann.post(edit, data=given)
    shown_again(
        answer, 409, "bob changed &#39;first&#39; 0s ago", "description b (yours: a)",
        "global execution command python &#39;b c&#39; (yours: empty)", 'name="version" value="2"',
        'name="description" value="a"',
    )  # fmt: skip
    assert ann.post(edit, data=given | {"version": "2"}).status_code == 303
