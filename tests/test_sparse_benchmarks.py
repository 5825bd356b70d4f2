"""The C of benchmarks/sparse.py is right: entries by hand agree with those that wengert finds."""

import importlib
import shutil
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.mark.parametrize("name", ["brusselator", "rosenbrock"])
def test_by_hand_agrees(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module(f"sparse_cases.{name}")
    measure = importlib.import_module("native.measure")
    for case in module.cases(True):
        found = {}
        for who in ("wengert", "wengert, matrix", "C"):
            call = case.contestants[who]()
            found[who] = measure.arrays(call.numbers(call.function(*call.arguments)))
        for numbers in found.values():
            assert measure.deviation(numbers, found["wengert"]) < 1e-12
