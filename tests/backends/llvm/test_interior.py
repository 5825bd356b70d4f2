"""Selections whose interior has a loop of its own: stores to slices, concatenations, padding."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir.index_analysis import counter
from wengert._engine.backends.llvm.lowering.loop_ir import Condition
from wengert._engine.backends.llvm.program import Program
from wengert._engine.backends.llvm.schedule.iteration_space import always, interiors_of


def smoothed(x, y):
    """A stencil: both arrays change in their interior."""
    for _ in range(9):
        y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1])
        x[1:-1, 1:-1] = 0.3 * (y[1:-1, 1:-1] + y[:-2, 1:-1]) + y[1:-1, 1:-1] ** 2
    return x, y


def padded(x):
    """Of any rank: two overlapping slices, one of them backwards, and rows that are appended."""
    shape = tuple(n + 3 for n in x.shape)
    y = np.zeros(shape)
    y[tuple(slice(1, -2) for _ in shape)] = x
    y[tuple(slice(-1, 2, -1) for _ in shape)] += x * x
    return np.concatenate([y, y[:3] * 2.0])


def bordered(x):
    """Constants in the interior and at the border, which do not depend on the index."""
    y = x * 2.0
    y[2:-3] = 5.0
    y[:, 1:-1] = y[:, 1:-1] * x[:, 1:-1]
    return np.concatenate([y, np.full((2, x.shape[1]), 7.0)])


def arrays(*shape, count=1):
    return list(np.random.default_rng(3).normal(size=(count, *shape)))


@pytest.mark.parametrize("shape", [(67, 131), (3, 700), (700, 3), (33, 33)])
def test_stencils_are_those_of_numpy(shape):
    mine, expected = arrays(*shape, count=2), arrays(*shape, count=2)
    smoothed(*expected)
    found = wg.jit(smoothed)(*mine)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(1500,), (4000,), (31, 60), (9, 12, 17)])
@pytest.mark.parametrize("f", [padded, bordered])
def test_selections_are_those_of_numpy(f, shape):
    if f is bordered and len(shape) != 2:
        shape = (shape[0], 40)
    (x,) = arrays(*shape)
    np.testing.assert_array_equal(wg.jit(f)(x), f(x))


@pytest.mark.parametrize("f", [padded, bordered])
def test_gradients_are_those_of_the_tape(f):
    (x,) = arrays(31, 60)
    total = lambda x: np.sum(np.sin(f(x)))  # noqa: E731
    np.testing.assert_allclose(wg.jit(wg.grad(total))(x), wg.grad(total)(x), rtol=1e-12, atol=1e-13)


def test_the_gradient_of_a_stencil_agrees_with_differences():
    x, y = arrays(40, 50, count=2)
    direction = arrays(40, 50, count=3)[2]
    total = lambda x, y: sum(np.sum(z**2) for z in smoothed(x * 1.0, y * 1.0))  # noqa: E731
    slope = np.sum(wg.jit(wg.grad(total))(x, y) * direction)
    h = 1e-6
    numeric = (total(x + h * direction, y) - total(x - h * direction, y)) / (2 * h)
    np.testing.assert_allclose(slope, numeric, rtol=1e-7)


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_of_a_parallel_loop_meet_inside_and_outside_of_the_interior(threads):
    (x,) = arrays(1400, 300)
    before = wg.get_threads()
    wg.set_threads(threads)
    try:
        found = wg.jit(padded)(x)
    finally:
        wg.set_threads(before)
    np.testing.assert_array_equal(found, padded(x))


def test_a_store_to_the_interior_has_a_loop_without_masks():
    def stored(x, y):
        y[1:-1, 1:-1] = x[1:-1, 1:-1] + x[2:, 1:-1]
        return y

    graph = wg.trace(stored)(*arrays(64, 600, count=2)).simplify()
    text = "\n".join(t for t, _ in Program(graph).modules)
    loops = re.split(r"^\w+:", text, flags=re.MULTILINE)
    assert any("fadd <" in x and "masked" not in x for x in loops), "every loop has masks"


def test_interiors():
    inside = Condition(counter(0).plus(-1), 0, 1998)
    backwards = Condition(counter(1).times(-1).plus(90), 0, 85)
    axes = {0: 2000, 1: 100}
    assert interiors_of(axes, [inside, backwards], 4) == {0: (1, 1999), 1: (6, 91)}
    assert interiors_of(axes, [Condition(counter(0), 0, 1100)], 4) == {0: (0, 1100)}
    assert interiors_of(axes, [Condition(counter(0), 1000, 1001)], 4) == {}  # no half is inside
    assert interiors_of({0: 100}, [Condition(counter(0).plus(-1), 0, 98)], 4) == {}  # too short


@pytest.mark.parametrize("factor", [-3, -1, 1, 2])
@pytest.mark.parametrize("low, high", [(-5, 30), (0, 7), (11, 12), (40, 90)])
def test_always_is_what_all_elements_say(factor, low, high):
    condition = Condition(counter(2).times(factor).plus(5), low, high)
    for first in range(0, 12, 3):
        for end in range(first + 1, 20, 4):
            each = {low <= factor * i + 5 < high for i in range(first, end)}
            expected = None if len(each) == 2 else each.pop()
            assert always(condition, {2: (first, end)}) == expected
