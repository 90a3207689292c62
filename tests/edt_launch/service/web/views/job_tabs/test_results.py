from edt_launch.service.web.views.job_tabs import results


def test_files_are_grouped_by_folders_and_named_in_addresses() -> None:
    made = {"files": [{"name": "work/a b/x?.pt", "size": 1500, "time": 1.0}], "complete": True}
    (folder,) = results.results("jaaaaaaaa", made, [], {}).folders
    assert folder.name == "work/a b"
    assert folder.archive == "/api/v1/jobs/jaaaaaaaa/results?name=work%2Fa+b"
    (file,) = folder.files
    assert (file.name, file.size) == ("x?.pt", "1.5 kB")
    assert file.address == "/api/v1/jobs/jaaaaaaaa/files/work/a%20b/x%3F.pt"


def test_the_model_comes_before_logs() -> None:
    names = ("log/a.log", "log/train/b", "model/train/c.pt", "modelled/d", "work/e")
    made = {"files": [{"name": name, "size": 1, "time": 1.0} for name in names], "complete": True}
    shown = [folder.name for folder in results.results("jaaaaaaaa", made, [], {}).folders]
    assert shown == ["model/train", "log", "log/train", "modelled", "work"]
