"""Where folders are on a host with a disk of its own."""

from edt_launch.agent.transfer.places import Places, merged

PLACES = Places({"/home/ann/out": "/cache/out", "/home/ann/code": "/cache/code"})


def test_paths_in_folders_that_have_moved_lead_there() -> None:
    paths = ("/home/ann/out", "/home/ann/out/log", "/home/ann/outside", "relative", "")
    assert list(map(PLACES.path, paths)) == ["/cache/out", "/cache/out/log", *paths[2:]]


def test_lists_of_paths_are_followed_and_other_values_stay() -> None:
    variables = {
        "PYTHONPATH": "/home/ann/code:/usr/lib",
        "URL": "http://a:1/home/ann/code",
        "LOGS": "/home/ann/out/l",
    }
    expected = {
        "PYTHONPATH": "/cache/code:/usr/lib",
        "URL": "http://a:1/home/ann/code",
        "LOGS": "/cache/out/l",
    }
    assert PLACES.environment(variables) == expected


def test_words_that_name_files_of_the_code_lead_to_its_copy() -> None:
    there = {"/cache/code/train.py"}
    words = ("code/train.py", "--lr", "0.1", "/home/ann/code/x.yaml", "train.py")
    found = PLACES.words(words, "/home/ann", there.__contains__)
    assert found == ("/cache/code/train.py", "--lr", "0.1", "/cache/code/x.yaml", "train.py")
    assert PLACES.words(("train.py",), "/home/ann/code", there.__contains__) == ("train.py",)


def test_a_job_has_the_hosts_own_home_and_its_environment_first_in_path() -> None:
    own = {"HOME": "/home/bob", "LANG": "C", "PATH": "/bin"}
    jobs = {"HOME": "/home/ann", "USER": "ann", "PATH": "/a/bin:/bin", "TMPDIR": "/gone", "X": "1"}
    found = merged(own, jobs, ("/a/bin/python", "/b/bin/python"), {"/"}.__contains__)
    assert found == {"HOME": "/home/bob", "LANG": "C", "USER": "ann", "PATH": "/b/bin:/a/bin:/bin", "X": "1"}
    assert merged(own, jobs, ("/a/bin/python", "/a/bin/python"), lambda path: True)["PATH"] == "/a/bin:/bin"
