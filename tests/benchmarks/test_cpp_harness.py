"""Exported functions in GradBench's C++ harness: the derivatives, and the text of the programs.

The harness itself is in a checkout of GradBench; here the derivatives that are exported are
compared with those that answer GradBench's messages.
"""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = ("hello", "llsq", "lse", "det", "kmeans", "gmm", "ode", "lstm")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_exported_is_what_answers_messages(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    harness = importlib.import_module("gradbench.cpp_harness")
    chosen = harness.EVALS[name]
    if name in ("hello", "ode"):
        given = harness.chosen_input(name)[1]
    else:
        _, given = next(iter(importlib.import_module(f"gradbench.cases.{name}").inputs(True)))
    function, arrays = chosen.derivative(given)
    results = function(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(chosen.outputs) and len(arrays) == len(chosen.inputs)
    functions = importlib.import_module(f"gradbench.evals.{name}").FUNCTIONS
    task = functions[chosen.function](given)
    names = ("alpha", "mu", "q", "l")
    tree = dict(zip(names, results, strict=True)) if name == "gmm" else list(results)
    found = {k: np.asarray(v).tolist() for k, v in tree.items()} if name == "gmm" else [
        np.asarray(v).ravel().tolist() for v in tree
    ]  # fmt: skip
    expected = harness.numbers(task.answer(task.once()))
    np.testing.assert_allclose(harness.numbers(found), expected, rtol=1e-10)
    text = harness.PROGRAM.format(eval=name, arguments="a", **vars(chosen))
    assert f'"{chosen.function}", function_main<Ours>' in text and f"{name}::Input" in text
