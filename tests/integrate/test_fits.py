"""Parameters of two published models of systems biology are recovered from generated data.

    signalling    dimers of STAT5A and STAT5B (Boehm et al., J. Proteome Res. 13, 5685, 2014)
    immunity      T cells after an infection (Crauste et al., Cell Systems 4, 306, 2017)

Both are in the collection of PEtab benchmark models.  Data are generated with rates of about the
published sizes that the observables determine, and `least_squares` starts from others; the
Jacobian of the residuals is that of the solver's steps.
"""

import functools

import numpy as np
import pytest

import wengert as wg
from wengert.integrate import solve
from wengert.scipy.optimize import least_squares

CYTOPLASM, NUCLEUS = 1.4, 0.45  # volumes
STAT5, SHARE, OTHER = 207.6, 0.693, 0.107  # amount, share of A, share of C17
TIMES = np.array([0, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 120, 160, 200, 240.0])


def signalling(t, y, p):
    """STAT5A, STAT5B, phosphorylated dimers AB, AA, BB, and these in the nucleus."""
    a, b, ab, aa, bb, nuclear_ab, nuclear_aa, nuclear_bb = y
    decay, export_hetero, export_homo, import_hetero, import_homo, phosphorylation = p
    rate = 1.25e-7 * phosphorylation * np.exp(-decay * t)
    to_aa, to_ab, to_bb = rate * a * a, rate * a * b, rate * b * b
    in_ab, in_aa, in_bb = import_hetero * ab, import_homo * aa, import_homo * bb
    out_ab = export_hetero * nuclear_ab
    out_aa, out_bb = export_homo * nuclear_aa, export_homo * nuclear_bb
    small, large = NUCLEUS / CYTOPLASM, CYTOPLASM / NUCLEUS
    return np.stack((
        small * (2 * out_aa + out_ab) - 2 * to_aa - to_ab,
        small * (2 * out_bb + out_ab) - 2 * to_bb - to_ab,
        to_ab - in_ab, to_aa - in_aa, to_bb - in_bb,
        large * in_ab - out_ab, large * in_aa - out_aa, large * in_bb - out_bb,
    ))  # fmt: skip


def percentages(logs, method="tsit5"):
    """The three observables at all times, of logarithms of the six parameters."""
    start = STAT5 * np.array([SHARE, 1.0 - SHARE, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = solve(signalling, TIMES, start, (10.0**logs,), method=method, rtol=1e-8, atol=1e-8)
    a, b, ab, aa, bb, *_ = found.y.T
    rest = 1.0 - OTHER
    all_a, all_b = ab + OTHER * (a + 2 * aa), ab + rest * (b + 2 * bb)
    return np.concatenate((
        (100 * ab + 200 * aa * OTHER) / all_a,
        (100 * ab + 200 * bb * rest) / all_b,
        100 * all_a / (all_a + all_b),
    ))  # fmt: skip


@functools.cache
def compiled(model):
    """The observables and their Jacobian: programs that the tests of a model share."""
    return wg.jit(model), wg.jit(wg.jacfwd(model))


def fitted(model, true, start):
    """The minimum of the squares of compiled residuals, with their compiled Jacobian."""
    observables, jacobian = compiled(model)
    data = observables(true)
    return least_squares(lambda x: observables(x) - data, start, jac=jacobian, xtol=1e-12)


def test_rates_of_signalling_are_recovered():
    true = np.log10([0.027, 0.01, 0.0062, 0.0164, 0.3, 15_800.0])
    found = fitted(percentages, true, true + np.array([0.3, -0.4, 0.3, 0.4, -0.3, -0.2]))
    assert found.cost < 1e-8
    assert found.nfev < 30
    np.testing.assert_allclose(found.x, true, atol=1e-6)


NAIVE, DAYS = 8090.0, np.array([4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 28, 42.0])
RATES = {
    "naive death": 0.74, "early death": 3.9e-5, "late death": 8.1e-6, "clearance": 1.2e-4,
    "activation": 0.0119, "differentiation": 0.518, "memory": 0.0226,
    "proliferation": 0.507, "pathogen": 0.126,
}  # fmt: skip


def immunity(t, y, p):
    """Naive cells, early and late effector cells, memory cells, pathogen."""
    naive, early, late, _, pathogen = y
    death, early_death, late_death, clearance, active, changing, remembered, growth, spread = p
    activated, changed, kept = active * naive * pathogen, changing * early, remembered * late
    return np.stack((
        -death * naive - activated,
        activated + growth * early * pathogen - early_death * early**2 - changed,
        changed - late_death * late**2 - kept,
        kept,
        (spread * pathogen - clearance * late) * pathogen,
    ))  # fmt: skip


def logarithms_of_cells(logs, method="tsit5"):
    """Of four kinds of cells on all days, as they are measured."""
    days = np.concatenate(([0.0], DAYS))
    start = np.array([NAIVE, 0.0, 0.0, 0.0, 1.0])
    found = solve(immunity, days, start, (np.exp(logs),), method=method, rtol=1e-9, atol=1e-9)
    return np.log(found.y[1:, 1:4] + 1.0).ravel()


@pytest.mark.slow  # another model beside that of signalling
def test_rates_of_immune_cells_are_recovered():
    true = np.log(np.array(list(RATES.values())))
    found = fitted(
        logarithms_of_cells, true, true + 0.1 * np.array([1, -1, 1, 1, -1, 1, -1, 1, -1.0])
    )
    assert found.cost < 1e-8
    assert found.nfev < 30
    np.testing.assert_allclose(found.x, true, atol=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "count"), [(percentages, 6), (logarithms_of_cells, 9)])
def test_both_modes_agree(model, count):
    logs = np.log10([0.027, 0.01, 0.0062, 0.0164, 0.3, 15_800.0])
    if count == 9:
        logs = np.log(np.array(list(RATES.values())))
    jacobian = compiled(model)[1](logs)
    weights = np.cos(np.arange(len(jacobian)))
    gradient = wg.jit(wg.grad(lambda x: weights @ model(x)))(logs)
    np.testing.assert_allclose(gradient, weights @ jacobian, rtol=1e-8)
