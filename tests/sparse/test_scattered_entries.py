"""Jacobians of programs that add elements at index arrays, and sum along axes."""

import numpy as np
import pytest

import wengert as wg

SIZE = 6
LINES = 8


def added(lines, order):
    """Sums of lines at targets that may repeat."""
    total = wg.tensor(np.zeros(SIZE))
    np.add.at(total, order, lines)
    return total


# From a vector to a vector of the same length.
STEPS = [
    lambda x, i, j, a: added(x[i] * np.sin(x[j]), i),
    lambda x, i, j, a: added(x[i] ** 2, j) - a,
    lambda x, i, j, a: np.sin(x) * a,
    lambda x, i, j, a: np.concatenate([x[3:] ** 2, x[:3]]),
    lambda x, i, j, a: np.sum(x.reshape(2, 3), axis=0)[[0, 1, 2, 2, 1, 0]] * x,
    lambda x, i, j, a: np.mean(x) * x + a,
    lambda x, i, j, a: np.stack([x, x[::-1] * a], axis=1).mean(axis=1),
    lambda x, i, j, a: np.where(a > 0.0, x, added(x[j], i)),
    lambda x, i, j, a: np.sum(x[None, :] * x[:, None], axis=1),
    lambda x, i, j, a: np.tanh(added(np.cos(x[i] - x[j]), i)) / (1.0 + x * x),
]


def check(rng):
    steps = [STEPS[k] for k in rng.integers(len(STEPS), size=rng.integers(1, 4))]
    i, j = rng.integers(SIZE, size=(2, LINES))
    a = rng.normal(size=SIZE)

    def f(x, a):
        for step in steps:
            x = step(x, i, j, a)
        return x

    x = rng.normal(size=SIZE)
    dense = wg.jacobian(f)(x, a)
    near = {"rtol": 1e-10, "atol": 1e-11 * max(1.0, np.abs(dense).max())}
    jac = wg.sparse_jacobian(f, order="csc")
    np.testing.assert_allclose(jac(x, a).toarray(), dense, **near)
    return f, jac, x, a


@pytest.mark.parametrize("seed", range(3))
def test_entries(rng, seed):
    check(rng)


def test_sums_of_lines_take_no_passes(rng):
    """The power that flows into the buses of a network."""
    i, j = rng.integers(SIZE, size=(2, LINES))

    def balance(x):
        flows = np.sin(x[i] - x[j]) * x[i]
        return added(flows, i) - added(0.9 * flows, j)

    x = rng.normal(size=SIZE)
    jac = wg.sparse_jacobian(balance)
    np.testing.assert_allclose(jac(x).toarray(), wg.jacobian(balance)(x), rtol=1e-12, atol=1e-14)
    assert jac.plan(x).explain().endswith("by diagonals, without passes")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_entries(rng, seed):
    f, jac, x, a = check(rng)
    if seed % 4 == 0:
        plan = jac.plan(x, a)
        for k in (0, 1):
            found = wg.grad(lambda x, a: np.sum(np.sin(plan.values(x, a))), k)(x, a)
            expected = wg.grad(
                lambda x, a: np.sum(np.sin(wg.jacobian(f)(x, a)[plan.rows, plan.cols])), k
            )(x, a)
            near = 1e-8 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=near)


def test_zeros_times_infinity():
    """A branch not taken, before and after a sum."""
    x = np.array([0.0, 1.0, 4.0])
    index = np.array([0, 1, 1, 2])
    f = lambda x: added(np.where(x > 0, np.sqrt(x), 0.0)[index], index)[:3]  # noqa: E731
    assert wg.sparse_jacobian(f)(x).toarray().tolist() == np.diag([0.0, 1.0, 0.25]).tolist()
    g = lambda x: np.where(x > 0, np.sqrt(added(x[index], index)[:3]), 0.0)  # noqa: E731
    expected = wg.jacobian(g)(x)
    assert np.all(np.isfinite(expected))
    np.testing.assert_allclose(wg.sparse_jacobian(g)(x).toarray(), expected, rtol=1e-13)


def test_too_many_derivatives_take_passes(rng):
    """Sums of sums: each level would multiply the number of derivatives."""

    def f(x):
        for _ in range(6):
            x = np.sum(np.sin(x)) + added(np.concatenate([x, x[:2]]), np.arange(8) % SIZE)
        return x

    x = 0.1 * rng.normal(size=SIZE)
    jac = wg.sparse_jacobian(f)
    np.testing.assert_allclose(jac(x).toarray(), wg.jacobian(f)(x), rtol=1e-11)
    assert "passes: 6" in jac.plan(x).explain()
