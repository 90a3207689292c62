from browser import browser, shown_again
from lab import Lab
from world import World


def test_managers_change_a_project(world: World) -> None:
    lab, ann = Lab(world), browser(world, "ann")
    page = f"/experiments/projects/{lab.project}"
    assert f"{page}/edit" in ann.get(page).text
    assert 'value="digits"' in ann.get(f"{page}/edit").text
    given = {"name": "<b>", "description": "d", "version": "1"}
    assert ann.post(f"{page}/edit", data=given).headers["location"] == page
    assert "&lt;b&gt;" in ann.get(page).text
    shown_again(ann.post(f"{page}/edit", data=given | {"name": "", "version": "2"}), 422, "name")


def test_the_second_of_two_managers_is_told_what_the_first_has_changed(world: World) -> None:
    lab, ann, bob = Lab(world), browser(world, "ann"), browser(world, "bob")
    lab.join("bob", "manager")
    address = f"/experiments/projects/{lab.project}/edit"
    assert bob.post(address, data={"name": "figures", "version": "1"}).status_code == 303
    mine = {"name": "digits", "description": "", "version": "1"}
    shown_again(ann.post(address, data=mine | {"name": " "}), 422, 'name="version" value="1"')
    answer = ann.post(address, data=mine)
    shown_again(answer, 409, "bob changed", "name figures (yours: digits)", 'name="version" value="2"')
    assert ann.post(address, data=mine | {"version": "2"}).status_code == 303
