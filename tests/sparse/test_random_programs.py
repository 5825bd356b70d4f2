"""Random programs: the pattern has all entries of the dense Jacobian, and the entries are equal.

A program is a chain of steps from vector to vector, each joined with something made earlier.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.sparse.coloring_and_order import (
    bidirectional_coloring,
    color_columns,
    is_proper,
    least,
)

LENGTH = 7


def program(rng, kinds):
    """A function of a vector, composed of random steps that are smooth near the given point."""
    steps = [kinds[k] for k in rng.integers(len(kinds), size=rng.integers(2, 7))]
    tables = [
        rng.normal(size=(LENGTH, LENGTH)) * (rng.random((LENGTH, LENGTH)) < 0.3) for _ in steps
    ]
    orders = [rng.integers(LENGTH, size=LENGTH) for _ in steps]
    earlier = [int(rng.integers(k + 1)) for k in range(len(steps))]

    def f(x):
        made = [x]
        for step, table, order, k in zip(steps, tables, orders, earlier, strict=True):
            y = step(made[-1], made[k], table, order)
            assert y.shape == (LENGTH,)
            made.append(y)
        return made[-1]

    return f


def placed(x, y, order):
    z = np.zeros(LENGTH) + 0.0 * y
    z[order[:3]] = np.sin(x[:3])
    z[2:4] += y[3:5]
    return z


def looped(x, y):
    return wg.fori_loop(0, 3, lambda i, c: 0.5 * c + np.roll(c, 1) * y, x)


def scanned(x, y):
    return wg.scan(lambda c, row: (c + 0.1 * row[0], c * row[1]), 0.3, (x, y))[1]


STEPS = [
    lambda x, y, a, i: np.sin(x) * y,
    lambda x, y, a, i: x + np.roll(y, 2),
    lambda x, y, a, i: x[i],
    lambda x, y, a, i: x[::-1] * y[i],
    lambda x, y, a, i: a @ np.tanh(x),
    lambda x, y, a, i: np.einsum("i,ij->j", x, a) + y,
    lambda x, y, a, i: np.concatenate([x[2:], y[:2]]),
    lambda x, y, a, i: np.where(a[0] != 0, x, y),
    lambda x, y, a, i: np.where(x > 0, x, y * y),
    lambda x, y, a, i: np.pad(np.diff(x), (1, 0)) * y,
    lambda x, y, a, i: np.cumsum(x) * 0.1,
    lambda x, y, a, i: x * a[0] + y,
    lambda x, y, a, i: np.outer(x[:3], y[:5]).reshape(5, 3).sum(axis=1)[[0, 1, 2, 3, 4, 0, 1]],
    lambda x, y, a, i: np.stack([x, y], axis=1).max(axis=1),
    lambda x, y, a, i: x * np.floor(y) + np.sum(x[:2]),
    lambda x, y, a, i: placed(x, y, i),
    lambda x, y, a, i: np.convolve(x, [1.0, -2.0, 1.0], "same"),
    lambda x, y, a, i: np.take_along_axis(x, i, 0) + y,
    lambda x, y, a, i: looped(x, y),
    lambda x, y, a, i: scanned(x, y),
    lambda x, y, a, i: np.sort(x)[:1] * y,
    lambda x, y, a, i: np.broadcast_to(x[:, None], (LENGTH, 2)).T.reshape(-1)[::2] + 0.0 * y,
    lambda x, y, a, i: wg.cond(x[0] > 0, lambda x: x * 2.0, lambda x: np.roll(x, 1), x),
]


# Steps that read neighbors or are elementwise, whose entries need no passes.
LOCAL = [
    *(STEPS[k] for k in (0, 1, 2, 3, 6, 7, 8, 9, 11, 15)),
    lambda x, y, a, i: np.stack([x, y]).sum(axis=0),
    lambda x, y, a, i: np.stack([x, y, x * y], axis=1)[:, 1:].reshape(-1)[::2],
    lambda x, y, a, i: np.pad(x, 1, mode="edge")[2:] * y,
    lambda x, y, a, i: np.exp(np.minimum(np.maximum(x, y), 1.0)),
    lambda x, y, a, i: x * y[0],
]


def check_pattern(rng, kinds):
    f, x = program(rng, kinds), 0.5 * rng.normal(size=LENGTH)
    dense = wg.jacobian(f)(x)
    pattern = wg.sparsity(f)(x)
    assert not np.any((dense != 0) & ~pattern.toarray())
    for p in (pattern, type(pattern)(pattern.T)):
        alone, best = color_columns(p), bidirectional_coloring(p)
        assert is_proper(p, alone) and is_proper(p, best)
        assert least(p) <= best.passes <= alone.passes
    return f, x, dense


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(30))
def test_patterns(rng, seed):
    check_pattern(rng, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1500))
def test_many_patterns(rng, seed):
    check_pattern(rng, STEPS)


def check_values(rng, mode, kinds=STEPS):
    f, x, dense = check_pattern(rng, kinds)
    found = wg.sparse_jacobian(f, mode=mode)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-11, atol=1e-12)

    def scalar(x):
        return np.sum(np.sin(f(x)) * x)

    hessian = wg.sparse_hessian(scalar)(x)
    np.testing.assert_allclose(hessian.toarray(), wg.hessian(scalar)(x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", ["auto", "rev"])
def test_values(rng, mode):
    check_values(rng, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("seed", range(60))
def test_many_values(rng, seed, mode):
    check_values(rng, mode)


@pytest.mark.parametrize("seed", range(1))
def test_values_without_passes(rng, seed):
    check_values(rng, "auto", LOCAL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_many_values_without_passes(rng, seed):
    check_values(rng, "auto", LOCAL)
