"""Gradients of loops with branches: contributions to cotangents are written in place.

A step costs the elements that it uses, not the whole array.
"""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.loops.in_place import updated_results
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.op_facts import BRANCH, LOOP


def branch(x):
    s = 0.0
    for k in range(20):
        if x[k] > 0:
            s += x[k] * 2
        else:
            s -= x[k] ** 2
    return s


def one_sided(x):
    s = 0.0
    for k in range(20):
        if x[k] > 0:
            s += x[k] ** 3
    return s


def nested(x):
    s = 0.0
    for k in range(20):
        if x[k] > 0:
            if x[k + 1] > 0:
                s += x[k] * x[k + 2]
        elif x[k] < -1:
            s -= x[k + 2] ** 2
    return s


def stores(x):
    y = np.zeros(40)
    for k in range(20):
        if x[k] > 0:
            y[k] += x[k] * 2
        else:
            y[2 * k] -= x[k] ** 2
    return np.sum(y**2)


def with_inner_loop(x):
    s = 0.0
    for k in range(20):
        if x[k] > 0:
            for j in range(k, 30):
                s += x[j] * x[k]
        else:
            s += np.sum(x[:k] ** 2)
    return s


def two_arrays(x):
    y, z = x * 1.0, x * 2.0
    for k in range(1, 20):
        if y[k] > 0:
            y[k] = y[k - 1] * z[k]
        else:
            z[k] = y[k] * z[k - 1]
    return np.sum(y * z)


PROGRAMS = [branch, one_sided, nested, stores, with_inner_loop, two_arrays]


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    x = np.random.default_rng(0).normal(size=40)
    expected = wg.grad(f)(x)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), expected, rtol=1e-12)
    v = np.random.default_rng(1).normal(size=40)
    second = wg.jit(wg.grad(lambda x: np.sum(wg.grad(f)(x) * v)))(x)
    h = 1e-6
    differences = (wg.grad(f)(x + h * v) - wg.grad(f)(x - h * v)) / (2 * h)
    np.testing.assert_allclose(second, differences, rtol=1e-6, atol=1e-6)
    rows = np.stack([x, -x, v])
    batch = wg.jit(wg.vmap(wg.grad(f)))(rows)
    np.testing.assert_allclose(batch, [wg.grad(f)(row) for row in rows], rtol=1e-12, atol=1e-13)


def slices(x):
    y = np.zeros(40)
    for k in range(2, 20):
        if x[k] > 0:
            y[k - 2 : k + 3] += x[k - 2 : k + 3] ** 2
        else:
            y[k] -= np.sum(y[:k]) * x[k]
    return np.sum(y**2)


def rows(x):
    A = x.reshape(20, 2)
    B = np.zeros_like(A)
    for i in range(1, 20):
        if A[i, 0] > 0:
            for j in range(2):
                B[i, j] = A[i, j] * B[i - 1, j] + 1
        else:
            for j in range(i % 2):
                B[i, j] += A[i - 1, j]
    return np.sum(B**2)


def element_written_again(x):
    y = np.zeros(40)
    for k in range(1, 20):
        if x[k] > 0:
            for j in range(3):
                y[k] += x[k - 1 + j] * y[k - 1]
        elif x[k] < -1:
            y[k - 1] = x[k]
    return np.sum(y**2)


def inner_sum(x):
    A = x.reshape(20, 2)
    s = 0.0
    for i in range(20):
        for j in range(2):
            if A[i, j] > 0:
                s += A[i, j] * A[j, i % 2]
    return s


def slice_as_variable(x):
    s, n = 0.0, 0
    for k in range(3, 20):
        part = x[k - 3 : k]
        if np.sum(part) > 0:
            head = x[: k // 2]
            n = len(head)
            s += np.sum(head**2) * x[k]
        s += np.sum(part) * n
    return s


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [slices, rows, element_written_again, inner_sum, slice_as_variable])
def test_slices_in_branches(f):
    test_gradients(f)


def newton(x):
    s = 0.0
    for k in range(20):
        z = 1.0 + x[k] ** 2
        for _ in range(20):
            d = (z * z - 2 - x[k] ** 2) / (2 * z)
            z -= d
            if abs(d) < 1e-12:
                break
        s += z
    return s


def inner_while(x):
    y = np.zeros(40)
    for k in range(1, 20):
        if x[k] > 0:
            y[k] = x[k] * y[k - 1]
            while y[k] < 3:
                y[k] = y[k] + 1 + x[k]
        else:
            y[k] = x[k]
    return np.sum(y**2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [inner_while, newton])
def test_loops_that_end(f):
    test_gradients(f)


ALL = [*PROGRAMS, slices, element_written_again, newton]


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", ALL)
def test_the_work_of_a_step_does_not_grow_with_the_array(f):
    """The loop has as many operations, and all arrays that it carries are written in place."""
    operations = []
    for n in (400, 4000):
        lowered = wg.jit(wg.grad(f)).lower(np.zeros(n))
        loops = str(lowered.loops).split("loop scan")[1:]
        operations.append([re.search(r"(\d+) flops", x)[1] for x in loops])
        graphs = [lowered.graph]
        while graphs:
            for node in graphs.pop().nodes:
                graphs += bodies_of(node)
                if node.op.control_flow in (LOOP, BRANCH):
                    carried = node.params.get("carried", len(node.spec))
                    arrays = {k for k in range(carried) if n in node.spec[k].shape}
                    assert arrays <= updated_results(node)
    assert operations[0] == operations[1]
