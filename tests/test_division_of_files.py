"""How tests/run.py divides the files of tests among its processes.

Each file is in one process; a file that was never measured is taken to last as long as the mean of
its folder.
"""

import json

from tests import browsers, run


def test_files_that_were_never_measured_take_the_mean_of_their_folder():
    known, folders = {"a/test_1.py": 3.0, "a/test_2.py": 5.0}, {"a": [3.0, 5.0]}
    assert run.expected("a/test_1.py", known, folders) == 3.0
    assert run.expected("a/test_new.py", known, folders) == 4.0
    assert run.expected("b/test_new.py", known, folders) == run.UNKNOWN


def test_new_files_of_a_folder_of_long_tests_are_divided(tmp_path, monkeypatch):
    measured = {
        "long/test_a.py": {"seconds": 20.0},
        "short/test_b.py": {"seconds": 1.0},
        "short/test_c.py": {"seconds": 30.0},
    }
    monkeypatch.setattr(run, "DURATIONS", tmp_path / "durations.json")
    run.DURATIONS.write_text(json.dumps(measured))
    names = ["long/test_new.py", "long/test_newer.py", *measured]
    parts = run.divided([str(run.TESTS / name) for name in names], 2)
    assert sorted(run.relative(name) for part in parts for name in part) == sorted(names)
    seconds = {name: each["seconds"] for name, each in measured.items()}
    total = [sum(seconds.get(run.relative(name), 20.0) for name in part) for part in parts]
    assert sorted(total) == [41.0, 50.0]  # 30 and 61, were a new file taken to last two seconds


def test_skipped_browser_tests_are_named_at_the_end():
    reason = "Skipped: needs a browser: no Chromium found; `make browser` installs it"
    skipped = [("test_a.py", reason), ("test_b.py", "Skipped: needs gcc"), ("test_a.py", reason)]
    line = browsers.shortfall(skipped)
    assert line.startswith("BROWSER TESTS SKIPPED, of test_a.py: no Chromium found")
    assert run.shortfalls(["1 passed\n", f"{line}\n"]) == [line]
    assert browsers.shortfall(skipped[1:2]) == ""


def test_compiled_modules_are_kept_and_not_beside_sources_where_they_are_not_wanted():
    assert run.keeping_bytecode({"HOME": "x"}) == {"HOME": "x"}
    unwanted = {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": "/cache"}
    kept = run.keeping_bytecode(unwanted)
    assert "PYTHONDONTWRITEBYTECODE" not in kept
    assert run.Path(kept["PYTHONPYCACHEPREFIX"]).is_relative_to("/cache")
    own = {**unwanted, "PYTHONPYCACHEPREFIX": "/own"}
    assert run.keeping_bytecode(own)["PYTHONPYCACHEPREFIX"] == "/own"
