"""Optimal power flow: the program of benchmarks/opf.py, files, derivatives."""

import sys
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert.optim import nlp

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

CASE = """
function mpc = three
mpc.version = '2';
mpc.baseMVA = 100.0;
mpc.bus = [ % numbers are names
    10 3 0.0 0.0 0.0 0.0 1 1.0 0.0 230.0 1 1.1 0.9;
    20 1 50.0 10.0 0.0 5.0 1 1.0 0.0 230.0 1 1.1 0.9;
    30 4 50.0 10.0 0.0 0.0 1 1.0 0.0 230.0 1 1.1 0.9;
];
mpc.gen = [
    10 0.0 0.0 80.0 -80.0 1.0 100.0 1 200.0 10.0;
    20 0.0 0.0 80.0 -80.0 1.0 100.0 0 200.0 10.0;
];
mpc.gencost = [
    2 0.0 0.0 2 14.0 3.0;
    2 0.0 0.0 3 0.1 15.0 0.0;
];
mpc.branch = [
    10 20 0.01 0.1 0.02 90.0 0 0 0.98 5.0 1 -30.0 30.0;
    10 30 0.01 0.1 0.02 90.0 0 0 0.0 0.0 1 -30.0 30.0;
];
"""


@pytest.fixture
def cases(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from opf_cases import model, network

    yield model, network
    for name in [n for n in sys.modules if n.startswith("opf_cases")]:
        del sys.modules[name]


def solve(model, net, demand=None, **more):
    given = model.program(net)
    lower, upper = dict(given.pop("lower")), dict(given.pop("upper"))
    if demand is not None:
        lower["active_balance"] = upper["active_balance"] = demand
    limits = {"lower": lower, "upper": upper}
    x0 = given.pop("x0")
    return nlp(
        lambda x: model.objective(x, net),
        x0,
        lambda x: model.constraints(x, net),
        **given,
        **limits,
        **more,
    )


def test_files_are_read_without_what_is_out_of_service(cases, tmp_path):
    _, network = cases
    (tmp_path / "three.m").write_text(CASE)
    net = network.read(tmp_path / "three.m")
    assert net.sizes == (2, 1, 1)
    assert np.allclose(net.demand, [0.0, 0.5 + 0.1j]) and np.allclose(net.shunt, [0.0, 0.05j])
    assert np.allclose(net.cost, [[0.0, 1400.0, 3.0]])
    assert np.isclose(net.tap[0], 0.98 * np.exp(1j * np.pi / 36))
    assert np.isclose(net.admittance[0], 1.0 / (0.01 + 0.1j))


def test_flows_are_those_of_complex_numbers(cases):
    model, network = cases
    net = network.ring(7)
    rng = np.random.default_rng(1)
    vm, va = rng.uniform(0.9, 1.1, 7), rng.uniform(-0.3, 0.3, 7)
    v = vm * np.exp(1j * va)
    near, far = v[net.origin], v[net.target]
    own = net.admittance + net.charging
    current = own * near / abs(net.tap) ** 2 - net.admittance / net.tap.conj() * far
    expected = near * current.conj()
    given = (vm[net.origin], vm[net.target]), va[net.origin] - va[net.target]
    found = model.flow(np, model.coefficients(net)[0], *given)
    assert np.allclose(found[0] + 1j * found[1], expected)


def test_prices_are_multipliers(cases):
    model, network = cases
    net = network.ring(12)
    found = solve(model, net)
    assert found.success
    prices = -found.multipliers.constraints["active_balance"]
    slope = wg.grad(lambda d: solve(model, net, d).fun)(net.demand.real)
    assert np.allclose(slope, prices, rtol=1e-6)
    power = wg.jacobian(lambda d: solve(model, net, d).x["generated"])(net.demand.real)
    step = np.zeros(12)
    step[5] = 1e-4
    ends = [solve(model, net, net.demand.real + s, tol=1e-10).x["generated"] for s in (step, -step)]
    assert np.allclose(power[:, 5], (ends[0] - ends[1]) / 2e-4, atol=2e-3)
