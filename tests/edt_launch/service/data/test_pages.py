from urllib.parse import quote

from browser import browser, shown_again
from lab import Lab
from world import World, tar

ARCHIVE = ("files", ("digits.tar.gz", tar({"train/a<b>.csv": b"1,2\n"})))
FOLDER = "/data/folder?path=users%2Fann%2Fdigits"


def test_data_is_uploaded_browsed_and_deleted(world: World) -> None:
    ann = browser(world, "ann")
    assert "No data sets yet" in ann.get("/data").text
    answer = ann.post("/data/upload", data={"name": "digits", "unpack": "1"}, files=[ARCHIVE])
    assert (answer.status_code, answer.headers["location"]) == (303, FOLDER)
    shown = ann.get("/data").text
    assert "digits" in shown
    assert "4 B" in shown
    page = ann.get(FOLDER).text
    assert 'href="/data/folder?path=users%2Fann%2Fdigits%2Ftrain"' in page
    inside = ann.get(f"{FOLDER}%2Ftrain").text
    assert "a&lt;b&gt;.csv" in inside
    assert 'path=users%2Fann%2Fdigits%2Ftrain%2Fa%3Cb%3E.csv" download' in inside
    theirs = browser(world, "bob")
    assert "/delete" not in theirs.get(f"{FOLDER}%2Ftrain").text
    file = f"/data/files/{quote('ann/digits/train/a<b>.csv')}/delete"
    assert theirs.post(file).status_code == 403
    assert "The file is deleted" in ann.get(file).text
    assert ann.post(file).headers["location"] == f"{FOLDER}%2Ftrain"
    assert "There is nothing in this folder" in ann.get(f"{FOLDER}%2Ftrain").text
    assert "with 0 files" in ann.get("/data/sets/ann/digits/delete").text
    assert ann.post("/data/sets/ann/digits/delete").headers["location"] == "/data"
    assert ann.get(FOLDER).status_code == 404
    changes = [one["path"] for one in world.admin.get("/audit").json()["changes"]]
    assert "/data/upload ann/digits" in changes


def test_of_files_that_are_sent_together_all_are_stored_or_none(world: World) -> None:
    ann = browser(world, "ann")
    folder = world.settings.data_folder / "users/ann/digits"
    for names, said in (
        (("a", "b"), "there is a &#39;b&#39; in users/ann/digits already"),
        (("a", "\u6f22" * 100), "the name is too long"),
        (("a", ".edt-x"), "no name of a file"),
        (("a", "a"), "&#39;a&#39; was sent twice"),
    ):
        world.ann.put("/datasets/ann/digits/files/b", content=b"old")
        sent = [("files", (name, b"new")) for name in names]
        answer = ann.post("/data/upload", data={"name": "digits"}, files=sent)
        assert answer.status_code in (409, 422)
        assert said in answer.text
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"b": b"old"}


def test_the_form_of_an_experiment_offers_data_sets_and_folders(world: World) -> None:
    lab = Lab(world)
    (world.settings.data_folder / "mnist").mkdir()
    for name, client in (("ann", lab.ann), ("bob", lab.bob)):
        client.put(f"/datasets/{name}/digits", content=tar({"train/a.csv": b"", "x": b""}))
    shown = browser(world, "ann").get(f"/experiments/new?project={lab.project}").text
    offered = shown.partition('<datalist id="folders">')[2].partition("</datalist>")[0]
    assert [one.partition('"')[0] for one in offered.split('value="')[1:]] == [
        "users/ann/digits", "users/ann/digits/train", "mnist", "users/bob/digits",
    ]  # fmt: skip


def test_files_are_added_and_archives_stored_as_they_are(world: World) -> None:
    ann, name = browser(world, "ann"), {"name": "digits"}
    several = [("files", (f"folder/{name}.csv", b"1")) for name in "ab"]
    ann.post("/data/upload", data=name | {"unpack": "1"}, files=several)
    ann.post("/data/upload", data=name, files=[ARCHIVE])
    names = [path.name for path in (world.settings.data_folder / "users/ann/digits").iterdir()]
    assert sorted(names) == ["a.csv", "b.csv", "digits.tar.gz"]
    again = ann.post("/data/upload", data=name, files=[ARCHIVE])
    shown_again(again, 409, "there is a &#39;digits.tar.gz&#39;", "choose it again")
    shown_again(ann.post("/data/upload", data=name), 422, "no file was chosen")
    theirs = browser(world, "bob").post("/data/upload", data=name | {"owner": "ann"}, files=[ARCHIVE])
    shown_again(theirs, 403, "of ann")
