"""A product that is scaled and added is one step, and has the same bits as the three steps."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.registry import backend

RNG = np.random.default_rng(0)


def stages(f, *arguments):
    graph = wg.trace(f)(*arguments).simplify()
    found = backend("llvm").compile(graph, {})(list(arguments))
    wanted = backend("interpret").compile(graph, {})(list(arguments))
    for a, b in zip(found, wanted, strict=True):
        tolerance = 1e-5 if np.asarray(b).dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    return backend("llvm").program(graph).plan.stages


def data(dtype, *shapes):
    return [RNG.normal(size=s).astype(dtype) for s in shapes]


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "f",
    [
        lambda p, a, b: p - 0.1 * (a @ b),
        lambda p, a, b: p + (a @ b) * 3.0,
        lambda p, a, b: (a @ b) - p,
        lambda p, a, b: 2.0 * (a @ b) - p,
        lambda p, a, b: (a @ b) + p,
        lambda p, a, b: p - np.einsum("ij,jk->ik", a, b),
    ],
)
@pytest.mark.parametrize("m", [20, 400])
def test_one_step(f, dtype, m):
    assert len(stages(f, *data(dtype, (m, 90), (m, 50), (50, 90)))) == 1


def test_two_products():
    found = stages(lambda a, b, c: a @ b + a @ c, *data("f8", (30, 40), (40, 20), (40, 20)))
    assert len(found) == 2


def test_large_products_of_blas():
    found = stages(
        lambda p, a, b: p - 0.5 * (a @ b), *data("f8", (600, 600), (600, 600), (600, 600))
    )
    assert len(found) == 1


def test_batches():
    found = stages(
        lambda p, a, b: p - 0.5 * (a @ b), *data("f8", (3, 20, 30), (3, 20, 9), (3, 9, 30))
    )
    assert len(found) == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "f",
    [
        lambda p, a, b: (p - 0.1 * (a @ b), a @ b),  # somebody else needs the product
        lambda p, a, b: (p - 0.1 * (a @ b)) * (0.1 * (a @ b)),
        lambda p, a, b: p[0] - 0.1 * (a @ b),  # another shape
        lambda p, a, b: np.exp(p) - 0.1 * (a @ b),  # not in memory
        lambda p, a, b: (a @ b) + (a @ b),
        lambda p, a, b: p.astype(np.float32) - 0.1 * (a @ b),
        lambda p, a, b: p[::-1] - 0.1 * (a @ b),
        lambda p, a, b: p - p[0, 0] * (a @ b),
    ],
)
def test_what_is_not_folded(f):
    stages(f, *data("f8", (20, 30), (20, 40), (40, 30)))


def test_an_operand_that_lies_otherwise():
    p, a, b = data("f8", (30, 20), (20, 40), (40, 30))
    stages(lambda p, a, b: p.T - 0.1 * (a @ b), p, a, b)
    f = wg.jit(lambda p, a, b: p - 0.1 * (a @ b))
    for _ in range(2):
        np.testing.assert_allclose(f(p.T, a, b), p.T - 0.1 * (a @ b), rtol=1e-12, atol=1e-12)
        wide = np.repeat(p.T, 2, axis=1)[:, ::2]
        np.testing.assert_allclose(f(wide, a, b), p.T - 0.1 * (a @ b), rtol=1e-12, atol=1e-12)


def test_zeros_that_are_stronger():
    strong = wg._engine.core.op.lookup("strong_einsum")
    p, t, x = data("f8", (20, 30), (20, 40), (40, 30))
    t[:, 3] = 0.0
    t[5, 7] = 0.0
    x[3, 4], x[7, 2], x[9, 1] = np.inf, np.nan, np.inf
    p[2, 3] = np.nan

    def f(p, t, x):
        return p - 0.25 * strong(t, x, letters=("ij", "jk", "ik"))

    assert len(stages(f, p, t, x)) == 1


def test_stronger_zeros_with_axes_of_length_one():
    strong = wg._engine.core.op.lookup("strong_einsum")
    p, t, x = data("f8", (1, 30), (1, 400), (400, 30))
    t[0, 3], x[3, 4] = 0.0, np.inf
    stages(lambda p, t, x: p + strong(t, x, letters=("ij", "jk", "ik")), p, t, x)
