"""benchmarks/gradbench: the tool speaks GradBench's protocol, and every eval is right.

C has derivatives that a person wrote, wengert has none of them: each proves the other, at tiny
sizes here; and the derivatives of C are checked against differences of its values.
"""

import importlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
EVALS = (
    "hello", "llsq", "lse", "det", "kmeans", "gmm", "ode", "ba", "ht", "lstm", "particle", "saddle",
)  # fmt: skip
SECONDS = {"gmm", "ba", "ht", "lstm", "particle", "saddle"}  # evals that take some to compile

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module", autouse=True)
def path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def module(name):
    return importlib.import_module(f"gradbench.{name}")


def said(*messages):
    return list(module("tool").respond(io.StringIO("\n".join(map(json.dumps, messages)))))


def evaluate(name, function, given, **rules):
    given = given | rules if isinstance(given, dict) else given
    message = {"id": 7, "kind": "evaluate", "module": name, "function": function, "input": given}
    return said(message)[0]


def test_rounds_without_numbers():
    start, known, unknown, analysis = said(
        {"id": 0, "kind": "start", "eval": "hello"},
        {"id": 1, "kind": "define", "module": "hello"},
        {"id": 2, "kind": "define", "module": "nothing"},
        {"id": 3, "kind": "analysis", "of": 2, "valid": True},
    )
    assert start["id"] == 0 and start["tool"] == "wengert"
    assert known == {"id": 1, "success": True}
    assert unknown["success"] is False and "nothing" in unknown["error"]
    assert analysis == {"id": 3}


def test_an_evaluation_is_answered():
    response = evaluate("hello", "double", 3.0)
    assert response["id"] == 7 and response["success"] and response["output"] == 6.0
    assert [t["name"] for t in response["timings"]] == ["prepare", "evaluate"]
    assert all(type(t["nanoseconds"]) is int for t in response["timings"])
    json.dumps(response)


@pytest.mark.parametrize(("runs", "seconds"), [(3, 0.0), (1, 0.02)])
def test_rules_of_repetition(runs, seconds):
    response = evaluate("lse", "gradient", {"x": [1.0, 2.0]}, min_runs=runs, min_seconds=seconds)
    times = [t["nanoseconds"] for t in response["timings"] if t["name"] == "evaluate"]
    assert len(times) >= runs
    assert sum(times) >= seconds * 1e9 > sum(times[:-1]) or len(times) == runs


def test_what_goes_wrong_is_answered():
    response = evaluate("lse", "gradient", {"y": []})
    assert response["success"] is False and "KeyError" in response["error"]


def test_the_tool_is_a_process():
    lines = [{"id": 0, "kind": "start"}, {"id": 1, "kind": "define", "module": "hello"}]
    done = subprocess.run(
        [sys.executable, "-m", "gradbench.tool"], input="\n".join(map(json.dumps, lines)),
        env={"PYTHONPATH": f"{BENCHMARKS}:{ROOT / 'src'}"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]


def cases():
    return [
        pytest.param(name, marks=[pytest.mark.slow] if name in SECONDS else []) for name in EVALS
    ]


@pytest.mark.sample(2)
@needs_gcc
@pytest.mark.parametrize("name", cases())
def test_answers_agree_with_c(name):
    case, measure = module(f"cases.{name}"), module("measure")
    functions = module(f"evals.{name}").FUNCTIONS
    assert set(case.DERIVATIVES) <= functions.keys()
    for description, given in case.inputs(True):
        for function in functions:
            golden = case.contestants(function, given)["C"]()
            response = evaluate(name, function, given, min_runs=1, min_seconds=0.0)
            assert response["success"], response.get("error")
            off = measure.deviation(response["output"], golden.answer(golden.once()))
            assert off < getattr(case, "WITHIN", measure.WITHIN), (function, description)


# value, derivative, and what the derivative is by
BY_DIFFERENCES = {
    "llsq": ("primal", "gradient", ("x",)),
    "lse": ("primal", "gradient", ("x",)),
    "det": ("primal", "gradient", ("A",)),
    "gmm": ("objective", "jacobian", ("alpha", "mu", "q", "l")),
    "ode": ("primal", "gradient", ("x",)),
}


@needs_gcc
@pytest.mark.parametrize("name", BY_DIFFERENCES)
def test_c_agrees_with_its_differences(name):
    case, step = module(f"cases.{name}"), 1e-5
    value, derivative, variables = BY_DIFFERENCES[name]

    def of_c(function, given):
        task = case.contestants(function, given)["C"]()
        return task.answer(task.once())

    def moved(given, variable, place, by):
        array = np.array(given[variable])
        array[place] += by
        answer = of_c(value, given | {variable: array.tolist()})
        return answer[-1] if isinstance(answer, list) else answer

    for _, given in case.inputs(True):
        found = of_c(derivative, given)
        for variable in variables:
            bar = np.array(found[variable] if isinstance(found, dict) else found)
            bar = bar.reshape(np.shape(given[variable]))
            for place in np.ndindex(bar.shape):
                up, down = (moved(given, variable, place, by) for by in (step, -step))
                assert bar[place] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-6)


def test_newtons_step_is_to_the_means():
    given = {"points": [[0.0, 0.0], [1.0, 3.0], [9.0, 9.0]], "centroids": [[1.0, 1.0], [8.0, 9.0]]}
    response = evaluate("kmeans", "dir", given)
    np.testing.assert_allclose(response["output"], [[0.5, -0.5], [-1.0, 0.0]], atol=1e-14)


@needs_gcc
def test_repetitions_in_c():
    task = next(iter(module("cases.hello").contestants("double", 4.0).values()))()
    result, times = task.times(5, 0.0)
    assert task.answer(result) == 8.0 and len(times) == 5
    assert sum(task.times(1, 1e-4)[1]) >= 1e5
