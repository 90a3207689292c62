from browser import browser, shown_again
from lab import Lab
from world import World


def test_no_user_is_a_member_before_one_is_chosen(world: World) -> None:
    lab, ann = Lab(world), browser(world, "ann")
    page = f"/experiments/projects/{lab.project}/members"
    assert (
        '<select class="form-select" name="user" required><option value="" selected>Choose'
        in ann.get(page).text
    )
    for role in ("viewer", ""):
        answer = ann.post(page, data={"user": "", "role": role})
        shown_again(answer, 422, "choose a user", f'<option value="{role}" selected')
    assert [one["user"] for one in lab.ann.get(f"/projects/{lab.project}").json()["members"]] == []
    assert ann.post(page, data={"user": "bob", "role": "viewer"}).status_code == 303
