"""Stores of single numbers in loops: in straight-line code, and carried to the next step."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.loops.carried_elements import with_elements
from wengert._engine.backends.llvm.program import Program


def smoothed(x, v):
    """The element that the step before has stored."""
    for _ in range(3):
        for i in range(1, x.shape[0]):
            x[i, 1:-1] += x[i - 1, :-2]
            for j in range(1, x.shape[1]):
                x[i, j] += x[i, j - 1]
                x[i, j] /= 3.0 + v[j]
    return x


def two_steps_back(x, v):
    for i in range(x.shape[0]):
        for j in range(2, x.shape[1]):
            x[i, j] = x[i, j] + 0.5 * x[i, j - 2] * x[i, j - 1]
    return x


def backwards(x, v):
    """From the last element, whose neighbor is the first one: index -1 wraps around."""
    for i in range(x.shape[0]):
        for j in range(0, x.shape[1] - 1):
            x[i, -j - 1] = v[j] * x[i, -j] + x[i, -j - 1]
    return x


def one_element(x, v):
    """An element that all steps update; another read of the array is the same element at times."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[1]):
                x[i, j] = np.maximum(x[i, j], x[i, k] * v[k]) + 0.1 * x[i, -1]
    return x


def largest_sums(x, v):
    """Branches that both store to one element."""
    for i in range(x.shape[0] - 1, -1, -1):
        for j in range(i + 1, x.shape[0]):
            if j - 1 >= 0:
                x[i, j] = max(x[i, j], x[i, j - 1])
            if i < j - 1:
                x[i, j] = max(x[i, j], x[i + 1, j - 1] * v[j])
            else:
                x[i, j] = max(x[i, j], x[i + 1, j - 1] + v[i])
            for k in range(i + 1, j):
                x[i, j] = max(x[i, j], x[i, k] + x[k + 1, j])
    return x


def versions(x, v):
    """Two arrays that are made of one, and an array of a few elements."""
    y = x * 1.0
    few = np.zeros(3)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            before = y[i, j - 1]
            x, y = y, x
            x[i, j] = before + v[j]
            few[j % 3] += x[i, j] * y[i, j]
            y[i, 0] = few[(j + 1) % 3]
    return np.sum(x * y) + np.sum(few)


def guarded(x, v):
    """Indices that are in bounds only if the branch is taken."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1] + 2):
            if j < x.shape[1]:
                x[i, j] = v[j] * x[i, j]
                if j + 1 < x.shape[1]:
                    x[i, j + 1] += x[i, j]
            else:
                x[i, 0] += 1.0
    return x


PROGRAMS = [smoothed, two_steps_back, backwards, one_element, largest_sums, versions, guarded]


def arguments(n, m):
    rng = np.random.default_rng(7)
    return rng.uniform(0.2, 0.9, (n, m)), rng.uniform(0.2, 0.9, m)


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_python(program):
    """At two sizes: the second compilation is for all sizes."""

    def total(x, v):
        return np.sum(program(x * 1.0, v) * 1.0)

    values, gradients = wg.jit(program), wg.jit(wg.grad(total, argnums=(0, 1)))
    for n, m in ((5, 6), (4, 9)):
        m = n if program is largest_sums else m
        x, v = arguments(n, m)
        wanted = x.copy()
        result = program(wanted, v)
        given = x.copy()
        np.testing.assert_allclose(values(given, v), result, rtol=1e-13)
        np.testing.assert_allclose(given, wanted, rtol=1e-13)
        found = gradients(x, v)
        for a, b in zip(found, wg.grad(total, argnums=(0, 1))(x, v), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "?"])
def test_what_is_stored_has_the_dtype_of_the_array(dtype):
    def program(x, v):
        for i in range(1, x.size):
            x[i] = x[i - 1] + v[i]
        return x

    x, v = np.zeros(9, dtype), np.linspace(0.3, 1.9, 9)
    np.testing.assert_allclose(wg.jit(program)(x.copy(), v), program(x.copy(), v), rtol=1e-6)


def shifted(x, start, steps):
    """No element is read if there are no steps."""
    for k in range(steps):
        x[start + k] = x[start + k] + 2.0 * x[start + k - 1]
    return x


@pytest.mark.parametrize("start, steps", [(1, 4), (0, 3), (-3, 5), (40, 0), (-90, 0), (5, 1)])
def test_loops_without_steps_read_nothing(start, steps):
    x = np.arange(1.0, 7.0)
    given = np.array(start), np.array(steps)
    found = wg.jit(shifted)(x.copy(), *given)
    np.testing.assert_allclose(found, shifted(x.copy(), start, steps))


@pytest.mark.parametrize("start, steps", [(4, 5), (7, 1), (-6, 1), (-8, 2)])
def test_indices_out_of_bounds_are_errors(start, steps):
    x = np.arange(1.0, 7.0)
    compiled = wg.jit(shifted)
    compiled(x.copy(), np.array(1), np.array(2))
    given = x.copy()
    with pytest.raises(IndexError, match=r"test_element_stores\.py"):
        compiled(given, np.array(start), np.array(steps))
    np.testing.assert_array_equal(given, x)


def test_stores_of_both_branches_are_one():
    def program(x, v):
        for i in range(1, x.size):
            if v[i] > 0.5:
                x[i] = x[i - 1]
            else:
                x[i] = v[i]
        return x

    graph = wg.trace(program)(np.ones(40), np.ones(40))
    assert str(graph).count("setitem") == 1
    assert "where" not in str(graph)


def test_what_a_loop_carries():
    """The read of the stored element is replaced; those of others are not."""

    def program(x, v):
        for j in range(2, 40):
            x[j] = x[j - 1] * v[j] + x[j - 2]
        return x

    graph = wg.jit(program).lower(np.ones(40), np.ones(40)).graph
    (loop,) = [n for n in graph if n.op.name == "scan"]
    found = with_elements(loop.params)
    assert found is not None and len(found.elements) == 1
    assert found.params["carried"] == loop.params["carried"] + 1
    reads = [n for n in found.params["body"] if n.op.name == "getitem"]
    assert len(reads) == len([n for n in loop.params["body"] if n.op.name == "getitem"]) - 1


def test_stores_of_a_few_elements_are_straight_line_code():
    """A new array with one element replaced, as cotangents are: no loop over its elements."""

    def loss(p):
        def step(_, y):
            met = y[0] * y[1]
            new = np.stack((p[0] * y[0] - p[1] * met, met - p[2] * y[1], y[2] * p[0]))
            return np.where(new[0] > 5.0, y, new)

        return np.sum(wg.fori_loop(0, 20, step, np.ones(3)))

    p = np.array([0.9, 0.5, 0.7])
    gradient = wg.grad(loss)
    program = Program(wg.trace(gradient)(p).simplify())
    (backwards,) = [b for (body, *_), b in program._bodies.items() if "backwards" in body.name]
    assert backwards.is_straight
    np.testing.assert_allclose(wg.jit(gradient)(p), gradient(p), rtol=1e-13)
