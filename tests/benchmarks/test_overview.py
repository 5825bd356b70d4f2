"""The page of all results: verdicts, ratios, plots and what is missing, of results made up here."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MACHINE = {"date": "", "cpu": "a <machine>", "cores": 1, "system": "", "python": "", "packages": {}}


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def suite(*cases, name="sums", threads=1, peers=None):
    made = [
        {"case": c, "contestants": {n: {"median": t} for n, t in ts.items()}} for c, ts in cases
    ]
    section = {"name": name, "title": f"{name} & more", "threads": threads, "cases": made}
    return {"machine": MACHINE, "sections": [section | {"peers": peers, "target": "", "text": ""}]}


def found(tmp_path, **suites):
    from overview.results import everything

    for name, results in suites.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(results))
    return everything(tmp_path)


TIMES = {"wengert": 2.0, "JAX": 6.0, "torch": 4.0, "C": 1.0, "C, closed": 0.1, "NumPy": 3.0}


def target(figures, limit, most=False):
    from overview.targets import Target

    return Target("w", "x", figures, limit, "benchmarks-new.md", "0001-engine.md", most=most)


def test_ratios_are_those_of_the_best(tmp_path):
    from overview.targets import over, ratios, times

    everything = found(tmp_path, new=suite(("a", TIMES)))
    assert ratios("new", "sums")(everything) == {"a": 2.0}
    assert ratios("new", "sums", peers=("JAX",))(everything) == {"a": 3.0}
    assert ratios("new", "sums", of="C")(everything) == {"a": 0.5}
    assert times("new", "sums")(everything) == {"a": 2.0}
    assert over("new", "sums", "wengert", "C")(everything) == {"a": 2.0}
    assert ratios("new", "other")(everything) == ratios("old", "sums")(everything) == {}


def test_a_row_is_met_if_all_its_cases_are(tmp_path):
    everything = found(tmp_path)
    figures = {"a": 1.0, "b": 2.0}
    assert target(lambda _: figures, 1.0).row(everything)[3:] == ["met", ""]
    verdict, why = target(lambda _: figures, 1.5).row(everything)[3:]
    assert verdict == "met in 1 of 2" and "0001-engine.md" in why
    assert target(lambda _: figures, 3.0).row(everything)[3] == "missed"
    measured, verdict = target(lambda _: figures, 1.5, most=True).row(everything)[2:4]
    assert measured.startswith("2 (b); best 1") and verdict == "met in 1 of 2"
    assert target(lambda _: {}, 1.0).row(everything)[2:] == ["not measured", "-", why]


def test_a_new_suite_is_taken_in_as_it_is(tmp_path):
    from overview import page

    results = suite(("a", TIMES), ("b < c", TIMES | {"wengert": 1.0}))
    made = page.files(found(tmp_path, new=results))
    assert "| new: sums & more |" in made["benchmarks.md"]
    assert "2 - 4" in made["benchmarks.md"] and "plots/new.svg" in made["benchmarks.md"]
    for name in ("overview", "new"):
        drawing = ElementTree.fromstring(made[f"plots/{name}.svg"])
        words = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
        assert any("sums & more" in word for word in words)
        titles = [t.text for t in drawing.iter("{http://www.w3.org/2000/svg}title")]
        assert any(t.startswith("b < c") or t.startswith("torch") for t in titles)


def test_a_suite_with_points_is_drawn_as_curves(tmp_path):
    from overview import page

    results = suite(("10 lines", TIMES), ("1,000 lines", TIMES), ("none", {}))
    for case, point in zip(results["sections"][0]["cases"], ("10", "1000", "9"), strict=True):
        case["point"] = point
    text = page.files(found(tmp_path, new=results))["plots/new.svg"]
    titles = [
        t.text for t in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")
    ]
    assert "JAX, 1,000: 6 s" in titles


def test_every_target_can_be_read_from_no_results_and_from_all():
    from overview.results import Everything, everything
    from overview.rows import ROWS

    assert len(ROWS) >= 20
    for row in ROWS:
        assert row.row(Everything({}, []))[2] == "not measured"
        assert (BENCHMARKS.parent / "docs" / "design" / row.record).exists(), row.record
        assert len(row.row(everything())) == 5


def test_a_peer_that_cannot_says_so_in_the_table():
    from native import page
    from native.case import Call, Cannot, Case
    from native.measure import measure

    def refuses():
        raise Cannot("no loops")

    case = measure(Case("a", {"wengert": lambda: Call(float, ("1",)), "X": refuses}), 0.01)
    assert case["contestants"]["X"] == {"cannot": "no loops"}
    section = {"title": "", "text": "", "target": "", "threads": 1, "cases": [case]}
    *_, table, notes = page.workload(section)
    assert "cannot" in table and notes.startswith("* a, X: cannot: no loops")


def test_one_failing_suite_does_not_stop_the_others(tmp_path, monkeypatch, capfd):
    import suites

    for name, text in {"a": "raise SystemExit(3)", "b": "print('measured')"}.items():
        (tmp_path / f"{name}.py").write_text(f"if __name__ == '__main__': {text}")
    (tmp_path / "overview.py").write_text("")
    monkeypatch.setattr(suites, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["suites.py"])
    assert suites.main() == 1
    printed = capfd.readouterr().out
    assert "failed: a, a" in printed and printed.count("measured") == 2


def test_every_suite_has_results():
    """Pages can be rendered; opf and s2mpj, which need files from elsewhere, are no suites."""
    import suites

    assert suites.suites().keys() == {
        path.stem for path in (suites.HERE / "results").glob("*.json")
    }


def test_all_threads_are_for_workloads_that_have_work_for_them():
    import suites

    found = {name: suites.on_all_threads(path) for name, path in suites.suites().items()}
    assert found["loops"] is found["gradbench"] is found["eager"] is None
    assert found["native"][:3] == ["--threads", "--only", "elementwise"]
    assert "cold" not in found["native"] and "steps" in found["learning"]
    assert not {"guard", "opf", "overview", "s2mpj", "suites"} & found.keys()
