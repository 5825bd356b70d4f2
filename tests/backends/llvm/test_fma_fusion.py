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


@pytest.mark.sample(8)
@pytest.mark.parametrize("as_rate", [float, np.asarray])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "f",
    [
        lambda p, a, b, rate: p - rate * (a @ b),
        lambda p, a, b, rate: p + (a @ b) * rate,
        lambda p, a, b, rate: rate * (a @ b) - p,
        lambda p, a, b, rate: p - np.einsum("ij,jk->ik", a, b) * rate,
    ],
)
@pytest.mark.parametrize("m", [20, 400])
def test_a_rate_that_is_an_input(f, dtype, as_rate, m):
    p, a, b, rate = data(dtype, (m, 90), (m, 50), (50, 90), ())
    assert len(stages(f, p, a, b, as_rate(rate))) == 1


def test_the_bits_of_a_rate_that_is_an_input_are_those_of_a_constant():
    p, a, b = data("f4", (64, 96), (64, 300), (300, 96))
    rate = np.float32(0.3)
    found = wg.jit(lambda p, a, b, rate: p - rate * (a @ b))(p, a, b, rate)
    wanted = wg.jit(lambda p, a, b: p - np.float32(0.3) * (a @ b))(p, a, b)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "f",
    [
        lambda p, a, b, rate: p - 0.5 * rate * (a @ b),
        lambda p, a, b, rate: p + -np.sqrt(rate) * (a @ b),
        lambda p, a, b, rate: (a @ b) * np.mean(p) + p,
        lambda p, a, b, rate: p - p[0, 1] * (a @ b),
        lambda p, a, b, rate: p - a[2, 3] * (a @ b),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_rate_that_is_computed(f, dtype):
    p, a, b = data(dtype, (20, 30), (20, 40), (40, 30))
    rate = np.array(0.3, dtype)
    assert stages(f, p, a, b, rate)[-1].rule.options["scaled"]


def test_a_rate_that_needs_the_product_is_not_folded():
    def f(p, a, b):
        c = a @ b
        return p - c / np.sum(c) * c

    stages(f, *data("f8", (20, 30), (20, 40), (40, 30)))
    stages(lambda p, a, b: p - np.sum(a @ b) * (a @ b), *data("f8", (4, 5), (4, 90), (90, 5)))


def test_a_variable_rate_in_a_loop_and_of_other_steps():
    p, a, b = data("f8", (12, 30), (12, 40), (40, 30))

    def f(p, a, b, rate):
        def step(k, c):
            q, r = c
            return q - r * (a @ b), r * 0.5 + p[0, 0]

        return wg.fori_loop(0, 5, step, (p, rate))[0]

    wanted, rate = p, 0.25
    for _ in range(5):
        wanted, rate = wanted - rate * (a @ b), rate * 0.5 + p[0, 0]
    np.testing.assert_allclose(wg.jit(f)(p, a, b, 0.25), wanted, rtol=1e-12, atol=1e-12)


def test_two_products():
    found = stages(lambda a, b, c: a @ b + a @ c, *data("f8", (30, 40), (40, 20), (40, 20)))
    assert len(found) == 2


def test_a_variable_rate_of_other_routines():
    """Long sums, BLAS, batches, one column, and sizes that are not known."""
    for shapes in (
        ((600, 600), (600, 600), (600, 600)),
        ((5, 9), (5, 30_000), (30_000, 9)),
        ((700, 48), (700, 50), (50, 48)),
        ((3, 20, 30), (3, 20, 9), (3, 9, 30)),
        ((50, 3, 3), (50, 3, 3), (50, 3, 3)),
        ((600,), (600, 700), (700,)),
    ):
        p, a, b = data("f8", *shapes)
        stages(lambda p, a, b, rate: p - rate * (a @ b), p, a, b, np.array(0.25))
    f = wg.jit(lambda p, a, b, rate: p - rate * (a @ b))
    for m, k, n in ((3, 40, 50), (60, 70, 80), (1, 30, 1)):
        p, a, b = data("f8", (m, n), (m, k), (k, n))
        np.testing.assert_allclose(f(p, a, b, 0.3), p - 0.3 * (a @ b), rtol=1e-12, atol=1e-12)


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
        return p - 0.25 * strong(t, x, subscripts=("ij", "jk", "ik"))

    assert len(stages(f, p, t, x)) == 1
    at = np.array(0.25)
    found = stages(
        lambda p, t, x, r: p - r * strong(t, x, subscripts=("ij", "jk", "ik")), p, t, x, at
    )
    assert len(found) == 1


def test_stronger_zeros_with_axes_of_length_one():
    strong = wg._engine.core.op.lookup("strong_einsum")
    p, t, x = data("f8", (1, 30), (1, 400), (400, 30))
    t[0, 3], x[3, 4] = 0.0, np.inf
    stages(lambda p, t, x: p + strong(t, x, subscripts=("ij", "jk", "ik")), p, t, x)
