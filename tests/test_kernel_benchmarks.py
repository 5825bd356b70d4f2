"""The programs of benchmarks/kernels.py are right: by quadrature, by LAPACK, by differences, by C.

Values and adjoints are computed eagerly on a small ocean, which takes milliseconds; compiled ones
and the C by hand are compared at the size that --quick measures, among the slow tests.
"""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

import wengert as wg

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SIZE = (8, 7, 4)


@pytest.fixture(scope="module")
def workload():
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"kernel_cases.{name}")
    sys.path.remove(str(BENCHMARKS))


def kernel(workload, name, monkeypatch):
    """A kernel of every library, its fields and what is fixed, on a small ocean."""
    module = workload(name)
    monkeypatch.setattr(workload("grid"), "shape", lambda cells: SIZE)
    if name == "state":
        return lambda library: module.program("enthalpy", library), module.water(0), ()
    arrays, ocean = module.fields(0)
    return getattr(module, name), arrays, (ocean,)


def test_enthalpy_is_the_integral_of_volume(workload):
    state = workload("state")
    volume, enthalpy = state.volume(np), state.dynamic_enthalpy(np)
    assert 1.0 / volume(35.16504, 0.0, 0.0) == pytest.approx(1028.2, abs=0.1)
    for s, t, p in ((35.0, 10.0, 1000.0), (0.5, 25.0, 10.0), (40.0, -1.0, 5000.0)):
        right, _ = quad(lambda x, s=s, t=t: volume(s, t, x), 0.0, p, epsabs=0.0, epsrel=1e-12)
        assert enthalpy(s, t, p) == pytest.approx(state.PASCAL * right, rel=1e-10)
        step = 1e-4
        slope = (enthalpy(s, t + step, p) - enthalpy(s, t - step, p)) / (2.0 * step)
        assert state.by_hand(s, t, p) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", ["state", "mixing", "turbulence"])
def test_adjoint_is_the_slope_of_differences(workload, monkeypatch, name):
    build, arrays, fixed = kernel(workload, name, monkeypatch)
    grid, peers = workload("grid"), workload("peers")
    if name == "state":
        by_hand = workload("state").by_hand
        value = lambda *x: (by_hand(*x),)  # noqa: E731
    else:
        value = build(peers.numpy())
    outputs = value(*arrays, *fixed)
    ours = build(peers.wengert())
    for a, b in zip(ours(*arrays, *fixed), outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12 * np.abs(b).max())
    by = grid.weights(outputs)
    loss = lambda *x: grid.weighted(ours(*x, *fixed), by)  # noqa: E731
    total, bars = wg.value_and_grad(loss, tuple(range(len(arrays))))(*arrays)
    assert total == pytest.approx(grid.weighted(outputs, by), rel=1e-9)
    random = np.random.default_rng(0)
    for k, (x, bar) in enumerate(zip(arrays, bars, strict=True)):
        # a part of the field's own size at each place: kinks and masks are far from most of it
        direction = x * random.uniform(0.5, 1.5, size=x.shape)
        step = 1e-6
        ends = []
        for sign in (1.0, -1.0):
            moved = (*arrays[:k], x + sign * step * direction, *arrays[k + 1 :])
            ends.append(grid.weighted(value(*moved, *fixed), by))
        slope = (ends[0] - ends[1]) / (2.0 * step)
        scale = np.sum(np.abs(bar * direction))
        assert abs(np.sum(bar * direction) - slope) < 1e-6 * scale + 1e-8 * abs(total), k


def test_energy_below_zero_has_a_finite_adjoint(workload, monkeypatch):
    """The root of what is not positive is taken of zero: the peers' advice is to rewrite it."""
    build, (tke, *rest), fixed = kernel(workload, "turbulence", monkeypatch)
    run = build(workload("peers").wengert())
    (bar,) = wg.grad(lambda tke: run(tke, *rest, *fixed)[0].sum(), (0,))(tke - 5e-4)
    assert (tke < 5e-4).any()
    assert np.isfinite(bar).all()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ["state", "mixing", "turbulence"])
def test_compiled_and_by_hand_agree(workload, name):
    measure = importlib.import_module("native.measure")
    for case in workload(name).cases(True):
        found = {}
        for who in {"wengert", "NumPy", "C"}.intersection(case.contestants):
            call = case.contestants[who]()
            found[who] = measure.arrays(call.numbers(call.function(*call.arguments)))
        for who, numbers in found.items():
            assert measure.deviation(numbers, found["wengert"]) < case.tolerance, (case.name, who)


def test_growth_is_a_power_of_the_axis(workload):
    """The page of benchmarks/growth.py, of figures that grow as the square."""
    growth = importlib.import_module("growth")
    cases = [
        {
            "case": f"{n} things",
            "point": str(n),
            "contestants": {"wengert": {"median": n * n * 1e-6}},
        }
        for n in (1, 10, 100)
    ]
    cases[1]["contestants"]["JAX"] = {"failed": "more than 25 s"}
    section = {"name": "depth", "title": "Depth", "text": "", "target": "", "cases": cases}
    rows = growth.rows_of(section, "median").splitlines()
    assert [row.split("|")[-2].strip() for row in rows[2:]] == ["-", "2.00", "2.00"]
    assert growth.notes(section) == ["* 10 things, JAX: failed: more than 25 s"]
