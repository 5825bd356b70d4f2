"""The comparison of NPBench's results: limits by dtype, and what the page says of them."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def cases():
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"npbench_cases.{name}")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(("dtype", "accepted"), [("f4", 2e-6), ("c8", 2e-6), ("f8", 2e-7)])
def test_results_agree_up_to_a_limit_of_their_dtype(cases, dtype, accepted):
    agrees = cases("program").agrees
    wanted = np.array([1.0, 3.0], dtype)
    near = (wanted * (1.0 + accepted)).astype(dtype)
    far = (wanted * (1.0 + 10.0 * accepted)).astype(dtype)
    assert agrees([near], [wanted])
    assert not agrees([far], [wanted])
    assert agrees([far], [wanted], 1e-3)  # what NPBench states for a program
    assert not agrees([], [wanted])
    assert not agrees([near[:1]], [wanted])


def test_results_agree_where_both_are_not_finite(cases):
    agrees = cases("program").agrees
    wanted = np.array([np.nan, np.inf, 1.0])
    assert agrees([wanted.copy()], [wanted])
    assert not agrees([np.array([np.nan, -np.inf, 1.0])], [wanted])
    assert not agrees([np.array([0.0, np.inf, 1.0])], [wanted])


def test_integers_have_to_be_equal(cases):
    assert cases("program").agrees([np.array([5, 7])], [np.array([5, 7])])
    assert not cases("program").agrees([np.array([5, 7])], [np.array([5, 8])])


def test_page_has_no_time_of_another_computation(cases):
    page = cases("page")
    times = {"wengert": {"median": 2.0}, "NumPy": {"median": 4.0}, "JAX": {"median": 1.0}}
    section = {"cases": [{"case": name, "contestants": times} for name in ("adi", "channel_flow")]}
    table, _, notes = page.values(section)
    rows = {line.split("|")[1].strip(): line for line in table.splitlines()}
    assert "1 s" in rows["adi"]
    assert "1 s" not in rows["channel_flow"]
    assert "channel_flow, JAX: cannot" in notes
