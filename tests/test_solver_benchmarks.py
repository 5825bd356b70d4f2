"""The contestants of benchmarks/solvers.py agree: programs by hand with those of wengert.

Peers that are not installed here (JAX, CasADi, numba) are left out; functions for numba run as
plain Python.
"""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
BY_HAND = {
    "roots": ("wengert", "NumPy", "wengert, SciPy's root", "SciPy"),
    "minima": ("wengert", "NumPy", "wengert, minimize", "SciPy"),
    "systems": ("wengert", "SciPy"),
    "integrals": ("wengert", "SciPy"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand_agrees(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module(f"solver_cases.{name}")
    measure = importlib.import_module("native.measure")
    for case in module.cases(True):
        found = {}
        for who in case.contestants.keys() & set(BY_HAND[name]):
            call = case.contestants[who]()
            found[who] = measure.arrays(call.numbers(call.function(*call.arguments)))
        for numbers in found.values():
            assert measure.deviation(numbers, found["wengert"]) < case.tolerance


def test_kepler_by_hand(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    kepler = importlib.import_module("solver_cases.by_numba").kepler
    module = importlib.import_module("solver_cases.roots")
    rng = np.random.default_rng(0)
    orbits = rng.uniform(0.0, 0.9, 20), rng.uniform(0.0, 3.0, 20)
    value, (by_e, by_m) = module.kepler(*orbits)["wengert"]().function(*orbits)
    total, e, m = kepler(*orbits)
    assert total == pytest.approx(float(value), abs=1e-9)
    assert np.allclose(e, by_e, atol=1e-8) and np.allclose(m, by_m, atol=1e-8)


def test_recurrences_of_tridiagonal_matrices(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    by_numba = importlib.import_module("solver_cases.by_numba")
    d, off, b = np.array([4.0, 5.0, 6.0, 3.0]), np.array([1.0, -1.5, 0.7]), np.arange(4.0)
    matrix = np.diag(d) + np.diag(off, 1) + np.diag(off, -1)
    factors = by_numba.factorized(d, off)
    assert np.allclose(by_numba.solved(*factors, b), np.linalg.solve(matrix, b))
    diagonal, beside = by_numba.inverse(*factors)
    inverse = np.linalg.inv(matrix)
    assert np.allclose(diagonal, np.diag(inverse)) and np.allclose(beside, np.diag(inverse, 1))
    assert np.log(factors[0]).sum() == pytest.approx(np.linalg.slogdet(matrix)[1])
