"""The last elements of a vectorized loop, fewer than all lanes, have narrower steps."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.program import Program


@pytest.mark.sample(25)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("columns", [*range(65, 80), 99, 127, 128, 129])
def test_all_lengths(dtype, columns):
    x = np.random.default_rng(columns).integers(-9, 9, (5, columns)).astype(dtype)
    f = lambda x, c: (x * c + x[:1], (x * x)[:, ::-1])  # noqa: E731
    for a, b in zip(wg.jit(f)(x, x[0]), f(x, x[0]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_over_rows_of_computed_length():
    def products(x, n):
        y = np.zeros(x.shape[1])
        for i in range(n):
            y[i:] += x[:, i] @ x[:, i:]
        return y

    x = np.random.default_rng(1).normal(size=(30, 41))
    np.testing.assert_allclose(wg.jit(products)(x, 41), products(x, 41), rtol=1e-13)


def test_a_masked_step_has_one_register():
    lanes = execution_engine.vector_bytes() // 8
    graph = wg.trace(lambda x: x * 2.0 + 1.0)(np.ones(1003)).simplify()
    text = "\n".join(t for t, _ in Program(graph).modules)
    assert {*re.findall(r"masked\.store\.v(\d+)f64", text)} == {str(lanes)}
