"""Slices that are written into the results of loops, outside of loops: in place where possible."""

import numpy as np
import pytest

import wengert as wg


def recurrence(x, first):
    y = np.zeros(x.shape)
    y[0] = first
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def rows(x):
    """Both results are written to, and read element by element from before."""
    y, z = recurrence(x, x[0]), recurrence(np.cos(x), x[1])
    total = y + z
    y[0] = 0.25 * total[0]
    y[1] = 0.25 * total[1] + 2.0 * y[0]
    z[-1] = 0.0
    z[-2, 1:] = total[-1, 1:]
    return recurrence(total, y[1]) + y * z


def columns(x):
    y = recurrence(x, x[0])
    y[:, 0] = y[:, 1]
    y[:, 2:5] *= 3.0
    return np.sum(y, axis=0) - recurrence(y, y[0])


def needed_from_before(x):
    y = recurrence(x, x[0])
    old = y.copy()
    y[1] = x[2]
    return recurrence(y, old[3]) + old * y


def overlapping(x):
    y = recurrence(x, x[0])
    y[1:] = y[:-1] + 1.0
    y[:, ::-1][2:4] = x[:2]
    return recurrence(y, y[2])


def results(x):
    y = recurrence(x, x[0])
    z = y + 1.0
    y[0] = z[1]
    return y, recurrence(z, y[0])


def in_branch(x):
    y = recurrence(x, x[0])
    if y[1, 1] > 0:
        y[0] = 2.0
    y[2] = y[0] + x[0]
    return recurrence(y, y[1])


PROGRAMS = [rows, columns, needed_from_before, overlapping, results, in_branch]


def given():
    return np.random.default_rng(0).normal(size=(21, 13))


def listed(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_as_in_numpy(program):
    x = given()
    compiled = wg.jit(program)
    for part in (x, x[:, :7], x[:11], x[3:18, 2:9]):  # the last ones with symbolic sizes
        for a, b in zip(listed(compiled(part)), listed(program(part)), strict=True):
            assert np.allclose(a, b, rtol=1e-14, atol=1e-14)


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program):
    x, t = given(), np.random.default_rng(1).normal(size=(21, 13))

    def total(x):
        return sum(np.sum(np.sin(y)) for y in listed(program(x)))

    eager = wg.grad(total)(x)
    assert np.allclose(wg.jit(wg.grad(total))(x), eager, rtol=1e-12, atol=1e-12)
    along = wg.jit(lambda x, t: wg.jvp(total, (x,), (t,))[1])(x, t)
    assert np.isclose(along, np.sum(eager * t), rtol=1e-11)
    batch = wg.jit(wg.vmap(wg.grad(total)))(np.stack([t, x]))
    assert np.allclose(batch[1], eager, rtol=1e-12, atol=1e-12)
    second = wg.jit(lambda x, t: wg.jvp(wg.grad(total), (x,), (t,))[1])(x, t)
    near = (wg.grad(total)(x + 1e-6 * t) - wg.grad(total)(x - 1e-6 * t)) / 2e-6
    assert np.allclose(second, near, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("program", "count"), [(rows, 4), (needed_from_before, 0), (results, 0)])
def test_which_writes_are_in_place(program, count):
    text = str(wg.jit(program).lower(np.zeros((40, 50))).loops)
    assert text.count("sliceupdate") == count
