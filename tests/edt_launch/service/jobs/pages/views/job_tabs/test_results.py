from edt_launch.service.jobs.pages.views.job_tabs import results


def test_the_model_comes_before_logs() -> None:
    names = ("log/a.log", "log/train/b", "model/train/c.pt", "modelled/d", "work/e")
    made = {"files": [{"name": name, "size": 1, "time": 1.0} for name in names], "complete": True}
    shown = [name for name, _ in results.results("jaaaaaaaa", made, [], {}).folders]
    assert shown == ["model/train", "log", "log/train", "modelled", "work"]
