"""The C of benchmarks/loops.py is right: adjoints by hand agree with wengert, compiled with loops.

Each way proves the other: the C has formulas that a person wrote, wengert has none of them.
"""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
BY_HAND = ("wengert", "wengert, forward", "C", "C -ffast-math")

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def workload():
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"loop_cases.{name}")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["lorenz", "kalman", "garch", "lstm", "nested"])
def test_by_hand_agrees(workload, name):
    module = workload(name)
    measure = importlib.import_module("native.measure")
    compared = 0
    for case in module.cases(True):
        found = {}
        for who in set(BY_HAND).intersection(case.contestants):
            call = case.contestants[who]()
            found[who] = measure.arrays(call.numbers(call.function(*call.arguments)))
        for numbers in found.values():
            assert measure.deviation(numbers, found["wengert"]) < 1e-10, case.name
        compared += "C" in found
    assert compared >= 2


def test_gradbench_expects_these_results(workload):
    """The numbers that its particle and saddle are checked with."""
    nested = workload("nested")
    for program, x, expected in (
        (nested.particle, 0.0, 0.2071918746486116),
        (nested.saddle, np.ones(2), 8.246324826140356e-06),
    ):
        call = nested.minimised(program, x)["wengert"]()
        assert call.function(*call.arguments) == pytest.approx(expected, rel=1e-8)
