"""Products with sparse matrices as kernels: strides, dtypes, batches, wrong patterns, memory."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import lookup

from .kernel_driver import agree, run

DTYPES = ["f4", "f8", "c8", "c16", "i4", "i8"]
INTEGERS = ["i4", "i8"]
ROWS, COLUMNS = 5, 4
INDICES, INDPTR = [3, 0, 0, 2, 1, 3, 0], [0, 2, 2, 5, 7, 7]  # two empty rows, a repeated column


def draw(rng, shape, dtype):
    x = 10.0 * rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def operands(name, rng, dtype, tail, lead=()):
    """The operands of numbers, and the parameters."""
    entries, above, below = (len(INDICES),), (ROWS, *tail), (COLUMNS, *tail)
    shapes = {
        "csr_matmul": (entries, below),
        "csr_transposed_matmul": (entries, above),
        "csr_sampled_matmul": (above, below),
        "csr_cotangents": (above, entries, below),
    }[name]
    params = {"columns": COLUMNS} if name == "csr_transposed_matmul" else {}
    if lead:
        params["stacked"] = True
    return [draw(rng, (*lead, *shape), dtype) for shape in shapes], params


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["csr_matmul", "csr_transposed_matmul", "csr_sampled_matmul"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_agree_with_the_interpreter(name, dtype, rng):
    for integer in INTEGERS:
        pattern = [np.array(x, integer) for x in (INDICES, INDPTR)]
        for tail in ((), (1,), (3,), (45,)):
            for lead in ((), (2,), (0,)):
                numbers, params = operands(name, rng, dtype, tail, lead)
                wanted = np.asarray(lookup(name).run(*numbers, *pattern, **params))
                status, (found,) = run(name, *numbers, *pattern, outputs=[wanted], **params)
                assert status == 0
                agree(found, wanted, None)


def test_both_cotangents(rng):
    for dtype in DTYPES:
        for integer in INTEGERS:
            pattern = [np.array(x, integer) for x in (INDICES, INDPTR)]
            numbers, _ = operands("csr_cotangents", rng, dtype, ())
            wanted = lookup("csr_cotangents").run(*numbers, *pattern)
            status, found = run("csr_cotangents", *numbers, *pattern, outputs=wanted)
            assert status == 0
            for a, b in zip(found, wanted, strict=True):
                agree(a, b, None)


@pytest.mark.parametrize("name", ["csr_matmul", "csr_transposed_matmul", "csr_sampled_matmul"])
def test_strides(name, rng):
    pattern = [np.array(x) for x in (INDICES, INDPTR)]
    numbers, params = operands(name, rng, "f8", (6,))
    numbers = [x[..., ::-2] if x.ndim == 2 else x for x in numbers]
    wanted = np.asarray(lookup(name).run(*numbers, *pattern, **params))
    status, (found,) = run(name, *numbers, *pattern, outputs=[wanted], strided=True, **params)
    assert status == 0
    agree(found, wanted, None)


WRONG = {
    "a column out of range": ([3, 0, 0, 2, 1, 4, 0], INDPTR),
    "a negative column": ([3, 0, 0, 2, -1, 3, 0], INDPTR),
    "too few entries": (INDICES, [0, 2, 2, 5, 6, 6]),
    "too many entries": (INDICES, [0, 2, 2, 5, 8, 8]),
    "a first entry": (INDICES, [1, 2, 2, 5, 7, 7]),
    "decreasing": (INDICES, [0, 5, 2, 2, 7, 7]),
    "outside": (INDICES, [0, 90, 2, 2, 7, 7]),
}


@pytest.mark.parametrize(
    "name", ["csr_matmul", "csr_transposed_matmul", "csr_sampled_matmul", "csr_cotangents"]
)
@pytest.mark.parametrize("what", WRONG)
def test_wrong_patterns(name, what, rng):
    pattern = [np.array(x) for x in WRONG[what]]
    numbers, params = operands(name, rng, "f8", ())
    with pytest.raises((IndexError, ValueError), match="sparse matrix"):
        lookup(name).run(*numbers, *pattern, **params)
    compiled = wg.jit(lambda *xs: lookup(name)(*xs, **params))
    with pytest.raises((IndexError, ValueError), match="sparse matrix"):
        compiled(*numbers, *pattern)


def test_results_have_the_same_bits(rng):
    pattern = [np.array(x) for x in (INDICES, INDPTR)]
    (data, v), _ = operands("csr_matmul", rng, "f8", ())
    first = np.array([sum(data[k] * v[INDICES[k]] for k in range(*INDPTR[i : i + 2]))
                      for i in range(ROWS)])  # fmt: skip
    compiled = wg.jit(lambda *xs: lookup("csr_matmul")(*xs))
    for _ in range(3):
        np.testing.assert_allclose(compiled(data, v, *pattern), first, rtol=1e-15)
    np.testing.assert_array_equal(compiled(data, v, *pattern), compiled(data, v, *pattern))
