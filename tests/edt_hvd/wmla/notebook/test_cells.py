from types import SimpleNamespace

from edt_hvd.wmla.notebook.cells import cells_of, script_of


def test_cells_are_those_that_ran_in_their_order() -> None:
    history = SimpleNamespace(input_hist_parsed=["", "a = 1\n", "  \n", "a += 1\n", "a += 1\n"])
    assert cells_of(SimpleNamespace(history_manager=history)) == ["a = 1\n", "a += 1\n", "a += 1\n"]


def test_the_script_holds_cells_as_they_are() -> None:
    cells = ['text = "{x}\\n\'"\n', "def f():\n    return '''é'''\n"]
    script = script_of(cells, ["", "/a b"], {"DATA_DIR": "/d", "LOG_DIR": None})
    replayed: list[object] = []
    calls = {"replay": lambda *given: replayed.extend(given)}
    head, imported, rest = script.partition("from edt_hvd.wmla.notebook.replay import replay\n")
    assert "sys.path[:] = ['', '/a b'] or sys.path" in head
    assert imported
    exec(compile(rest, "script", "exec"), calls)
    assert replayed[:2] == [cells, {"DATA_DIR": "/d", "LOG_DIR": None}]
