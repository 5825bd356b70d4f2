"""The contestants of benchmarks/odes.py agree with accurate solutions, by hand and by wengert.

Peers that are not installed here (diffrax, CasADi, numbalsoda) are left out; functions for numba
run as plain Python.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
PUBLISHED = ("lotka_volterra", "pkpd", "pollution", "brusselator", "robertson")
CLASSIC = ("hires", "orego", "van_der_pol", "three_body")
WITHIN = {"value": 3e-3, "gradient": 1e-2, "jacobian": 1e-2}


@pytest.fixture(scope="module")
def benchmarks():
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(name)
    sys.path.remove(str(BENCHMARKS))


def problem(benchmarks, name):
    module = "published" if name in PUBLISHED else "classic"
    return getattr(benchmarks(f"ode_cases.{module}"), name)()


def deviation(benchmarks, of, kind, result):
    """From the reference, as the benchmark measures it."""
    measure = benchmarks("native.measure")
    right = measure.arrays(benchmarks("ode_cases.references").found(of.name, kind))
    return measure.deviation(measure.arrays(result), right)


@pytest.mark.parametrize("name", PUBLISHED + CLASSIC)
def test_forms_of_a_right_hand_side_agree(benchmarks, name):
    of = problem(benchmarks, name)
    rng = np.random.default_rng(0)
    for t in (0.3, 2.0):
        y = of.start + 0.1 * rng.random(of.start.size)
        out = np.empty(y.size)
        of.loops(lambda f: f)(t, y, of.parameters, out)
        np.testing.assert_allclose(of.rhs(np)(t, y, of.parameters), out, rtol=1e-12)


@pytest.mark.parametrize("kind", ["value", "gradient", "jacobian"])
def test_sensitivities_by_hand(benchmarks, kind):
    of = problem(benchmarks, "lotka_volterra")
    run = benchmarks("ode_cases.by_hand").lotka_volterra(of, kind, lambda f: f)
    assert deviation(benchmarks, of, kind, run(of.parameters)) < WITHIN[kind]


def test_rosenbrock_by_hand(benchmarks):
    of = problem(benchmarks, "robertson")
    run = benchmarks("ode_cases.by_hand").robertson(of, lambda f: f)
    assert deviation(benchmarks, of, "value", run(of.parameters)) < WITHIN["value"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["value", "gradient", "jacobian"])
@pytest.mark.parametrize("name", PUBLISHED + CLASSIC)
def test_wengert_agrees(benchmarks, name, kind):
    of = problem(benchmarks, name)
    call = benchmarks("ode_cases.by_wengert").call(of, kind)
    result = call.function(*call.arguments)
    within = 0.1 if name == "van_der_pol" else WITHIN[kind]  # small differences of large numbers
    assert deviation(benchmarks, of, kind, result) < within


def test_trajectories_are_the_single_ones(benchmarks):
    of = problem(benchmarks, "lotka_volterra")
    ours = benchmarks("ode_cases.by_wengert")
    rows = of.parameters * np.linspace(0.9, 1.1, 5)[:, None]
    call = ours.trajectories(of, rows)
    found = call.function(*call.arguments)
    single = ours.call(of, "value").function
    np.testing.assert_allclose(found, [single(row) for row in rows], rtol=1e-9)


@pytest.mark.parametrize("kind", ["value", "gradient", "jacobian"])
@pytest.mark.parametrize("name", ["lotka_volterra", "robertson"])
@pytest.mark.parametrize("peer", ["casadi", "numbalsoda", "diffrax"])
def test_peers_agree(benchmarks, peer, name, kind):
    pytest.importorskip(peer, reason=f"{peer} is not installed")
    of = problem(benchmarks, name)
    contestants = benchmarks("ode_cases.contestants")
    who = {"casadi": "CasADi"}.get(peer, peer)
    makes = contestants.case(of, kind).contestants
    if who not in makes:
        pytest.skip(f"{who} has no {kind}")
    call = makes[who]()
    numbers = call.numbers(call.function(*call.arguments))
    assert deviation(benchmarks, of, kind, numbers) < contestants.WITHIN[kind]
