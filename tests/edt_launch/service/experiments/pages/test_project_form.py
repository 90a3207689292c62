from browser import browser, shown_again
from lab import Lab


def test_no_user_is_a_member_before_one_is_chosen(lab: Lab) -> None:
    ann, page = browser(lab.world, "ann"), f"/experiments/projects/{lab.project}/members"
    assert 'name="user" required><option value="" selected>Choose' in ann.get(page).text
    answer = ann.post(page, data={"user": "", "role": "viewer"})
    shown_again(answer, 422, "choose a user", '<option value="viewer" selected')
    assert lab.ann.get(f"/projects/{lab.project}").json()["members"] == []
    assert ann.post(page, data={"user": "bob", "role": "viewer"}).status_code == 303
