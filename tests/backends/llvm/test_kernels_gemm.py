"""Blocked matrix products, and matrices transposed in registers.

Every height and width of a tile, sums that are longer than one block, factors that lie anyhow and
sizes that are not known; memory around each result must stay as it is.
"""

from __future__ import annotations

import ctypes
import itertools
import pathlib

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm import tuning
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.llvm_types import F64
from wengert._engine.backends.llvm.kernels import index
from wengert._engine.backends.llvm.kernels.gemm import blocked_gemm, choose
from wengert._engine.backends.llvm.kernels.gemm.operands import Matrix, MatrixAxis, Product
from wengert._engine.backends.llvm.runtime import runtime_library
from wengert._engine.core.symbolic.constraints import dim

from .kernel_driver import Compiled, agree, run


def matrix(rows, columns, order="C"):
    near = (columns, 1) if order == "C" else (1, rows)
    return Matrix("", MatrixAxis(rows, near[0]), MatrixAxis(columns, near[1]))


def check(a, b, begin=None, **options):
    wanted = options.get("alpha", 1.0) * (a.astype(np.float64) @ b.astype(np.float64))
    if begin is not None:
        wanted += options["beta"] * begin
    status, (found,) = run(
        "matmul", a, b, outputs=[wanted.astype(a.dtype)], strided=True, begin=begin,
        options=options,
    )  # fmt: skip
    assert status == 0
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64) + 1
    assert np.max(np.abs(found - wanted) / scale) < 20 * np.finfo(a.dtype).eps


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [2, 7, 8, 9, 16, 17, 31, 32, 33, 50, 64])
def test_every_width(n, dtype):
    rng = np.random.default_rng(n)
    for m, k in ((2, 3), (11, 9), (12, 40), (13, 40), (25, 8), (128, 5), (131, 300)):
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        check(a, b)


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ways", ["NN", "NT", "TN", "TT", "SN", "NS"])
def test_factors_that_lie_anyhow(ways, dtype):
    rng = np.random.default_rng(1)

    def lain(shape, way):
        if way == "T":
            return rng.normal(size=shape[::-1]).astype(dtype).T
        if way == "S":
            return rng.normal(size=(2 * shape[0], 3 * shape[1])).astype(dtype)[::2, ::3]
        return rng.normal(size=shape).astype(dtype)

    for m, k, n in ((13, 37, 21), (64, 48, 40), (150, 70, 34)):
        check(lain((m, k), ways[0]), lain((k, n), ways[1]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_long_sums_are_added_up_in_blocks(dtype):
    rng = np.random.default_rng(2)
    for m, k, n in ((10, 20_001, 10), (3, 9_000, 40), (130, 4_100, 66)):
        check(rng.normal(size=(k, m)).astype(dtype).T, rng.normal(size=(k, n)).astype(dtype))


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("m", [2, 5, 7, 13, 16])
@pytest.mark.parametrize("n", [2, 31, 32, 33, 100])
def test_a_few_rows_times_a_matrix_beyond_the_caches(m, n, dtype):
    rng = np.random.default_rng(m * n)
    if execution_engine.vector_bytes() < 32:
        pytest.skip("streams need AVX2")
    with tuning.using(streamed_bytes=1):
        for k in (1, 7, 8, 9, 40, 1_003):
            product = Product(matrix(m, k), matrix(k, n), matrix(m, n), np.dtype(dtype))
            assert choose.choose(product).routine == "streamed"
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
            check(a, b)
            check(np.asfortranarray(a), b)
            check(a, rng.normal(size=(k, 2 * n)).astype(dtype)[:, :n])
            c = rng.normal(size=(m, n)).astype(dtype)
            check(a, b, c, alpha=-0.5, beta=1.0)
            check(a, b, c, alpha=2.0, beta=0.25)


def test_such_a_product_has_the_same_bits_on_several_threads():
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(6, 501)), rng.normal(size=(501, 1003))
    a[2, 3], b[17, 5], b[18, 1002] = np.nan, np.inf, -np.inf
    with tuning.using(streamed_bytes=1, parallel_contraction_flops=1000):
        one, two = (wg.jit(lambda a, b: a @ b, threads=n) for n in (1, 2))
        found = one(a, b)
        np.testing.assert_array_equal(found, two(a, b))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_such_a_product_with_more_columns_than_fit_into_a_cache(threads):
    rng = np.random.default_rng(9)
    for m, k, n in ((5, 37, 1_003), (16, 9, 64), (3, 8, 129)):
        a, b, c = (rng.normal(size=x) for x in ((m, k), (k, n), (m, n)))
        with tuning.using(
            streamed_bytes=1, gemm_cached_bytes=4 * 8 * m * 70, parallel_contraction_flops=5_000
        ):
            f = wg.jit(lambda a, b, c: (a @ b, c + 0.5 * (a @ b)), threads=threads)
            for found, expected in zip(f(a, b, c), (a @ b, c + 0.5 * (a @ b)), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_such_a_product_scaled_and_added_in_a_program():
    rng = np.random.default_rng(8)
    w, a, b = rng.normal(size=(5, 37)), rng.normal(size=(5, 90)), rng.normal(size=(90, 37))
    with tuning.using(streamed_bytes=1):
        step = wg.jit(lambda w, a, b, rate: w - rate * (a @ b))
        np.testing.assert_allclose(step(w, a, b, 0.3), w - 0.3 * (a @ b), rtol=1e-12, atol=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("m", [2, 5, 8, 13, 16])
@pytest.mark.parametrize("n", [2, 3, 4, 31, 100])
def test_a_few_rows_times_the_transpose_of_a_matrix_beyond_the_caches(m, n, dtype):
    rng = np.random.default_rng(m * n)
    if execution_engine.vector_bytes() < 32:
        pytest.skip("streams need AVX2")
    with tuning.using(streamed_bytes=1):
        for k in (256, 257, 263, 272, 1_003):
            product = Product(matrix(m, k), matrix(k, n, "F"), matrix(m, n), np.dtype(dtype))
            assert choose.choose(product).routine == "streamed dots"
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(n, k)).astype(dtype).T
            check(a, b)
            check(np.asfortranarray(a), b)
            check(a, rng.normal(size=(n, 2 * k)).astype(dtype)[:, :k].T)
            check(rng.normal(size=(m, 3 * k)).astype(dtype)[:, k : 2 * k], b)
            c = rng.normal(size=(m, n)).astype(dtype)
            check(a, b, c, alpha=-0.5, beta=1.0)
            check(a, b, c, alpha=2.0, beta=0.25)


def test_such_a_product_with_a_transpose_has_the_same_bits_on_several_threads():
    rng = np.random.default_rng(7)
    a, b, c = rng.normal(size=(6, 501)), rng.normal(size=(1003, 501)), rng.normal(size=(6, 1003))
    a[2, 3], b[5, 17], b[1002, 18] = np.nan, np.inf, -np.inf
    with tuning.using(streamed_bytes=1, parallel_contraction_flops=1000):
        f = lambda a, b, c, rate: (a @ b.T, c - rate * (a @ b.T), c + a @ b.T)  # noqa: E731
        one, two = (wg.jit(f, threads=n) for n in (1, 2))
        found = one(a, b, c, 0.3)
        for x, y in zip(found, two(a, b, c, 0.3), strict=True):
            np.testing.assert_array_equal(x, y)
    with np.errstate(invalid="ignore"):
        for x, y in zip(found, f(a, b, c, 0.3), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [32, 48, 64, 33])
def test_results_that_are_written_past_the_caches(n, dtype):
    if execution_engine.vector_bytes() < 32:
        pytest.skip("the microkernel needs AVX2")
    rng = np.random.default_rng(n)
    with tuning.using(streamed_bytes=1):
        for m, k in ((17, 1), (19, 3), (25, 8), (131, 32), (131, 40)):
            product = Product(matrix(m, k), matrix(k, n), matrix(m, n), np.dtype(dtype))
            is_aligned = n * product.dtype.itemsize % execution_engine.vector_bytes() == 0
            routine = choose.choose(product).routine
            assert (routine == "uncached") == (is_aligned and k <= 32)
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
            check(a, b)
            check(np.asfortranarray(a), b)
            check(a, b, rng.normal(size=(m, n)).astype(dtype), alpha=-0.5, beta=1.0)
            check(a, b, alpha=3.0)
        lowered = wg.jit(lambda a, b: a @ b, threads=1).lower(np.ones((40, 8)), np.ones((8, n)))
        assert ("!nontemporal" in lowered.llvm_ir) == (n % 8 == 0)
        a, b = rng.normal(size=(300, 4)), rng.normal(size=(4, n))
        for threads in (1, 2):  # at addresses that are a multiple of 64, and at others
            f = wg.jit(lambda a, b: (a @ b, np.exp(a @ b), np.ones(3)), threads=threads)
            for x, y in zip(f(a, b), (a @ b, np.exp(a @ b), np.ones(3)), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_result_written_past_the_caches_by_several_threads():
    rng = np.random.default_rng(11)
    for m in (97, 100, 333):
        a, b = rng.normal(size=(m, 5)), rng.normal(size=(5, 64))
        with tuning.using(streamed_bytes=1):
            f = lambda a, b, rate: (a @ b, rate * (a.T.copy().T @ b))  # noqa: E731
            one, two = (wg.jit(f, threads=n) for n in (1, 3))
            for x, y in zip(one(a, b, 0.3), two(a, b, 0.3), strict=True):
                np.testing.assert_array_equal(x, y)
            np.testing.assert_allclose(two(a, b, 0.3)[0], a @ b, rtol=1e-12, atol=1e-12)


def test_results_at_addresses_that_are_not_those_of_vectors():
    if execution_engine.vector_bytes() < 32:
        pytest.skip("the microkernel needs AVX2")
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(50, 7)), rng.normal(size=(7, 32))
    with tuning.using(streamed_bytes=1):
        compiled = Compiled(
            "matmul", {}, [((50, 7), (7, 1), "f8"), ((7, 32), (32, 1), "f8")],
            [((50, 32), (32, 1), "f8")],
        )  # fmt: skip
    assert "!nontemporal" in compiled.text
    memory = np.full(50 * 32 + 32, 7.0)
    for start in range(16):
        memory[:] = 7.0
        out = memory[start : start + 50 * 32]
        assert compiled([a.ctypes.data, b.ctypes.data, out.ctypes.data], {}) == 0
        agree(out.reshape(50, 32), a @ b)
        assert (memory[:start] == 7.0).all()
        assert (memory[start + 50 * 32 :] == 7.0).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_such_a_product_of_unknown_sizes(dtype, threads):
    rng = np.random.default_rng(17)
    with tuning.using(streamed_bytes=4096, streamed_columns=16, streamed_result_bytes=2048):
        index.compiled.cache_clear()
        product = wg.jit(lambda a, b: a @ b, threads=threads)
        with_addend = wg.jit(lambda a, b, c, s: s * (a @ b) - 0.5 * c, threads=threads)
        sizes = [(2, 99, 31), (3, 40, 50), (5, 0, 64), (8, 129, 130), (13, 64, 1), (16, 300, 200)]
        for m, k, n in [*sizes, (17, 90, 90), (1, 200, 80), (0, 80, 80), (7, 8, 33), (6, 7, 700)]:
            a, b, c = (rng.normal(size=x).astype(dtype) for x in ((m, k), (k, n), (m, n)))
            eps = 40 * np.finfo(dtype).eps * (1 + np.abs(a) @ np.abs(b))
            assert np.all(np.abs(product(a, b) - a @ b) <= eps)
            found, wanted = with_addend(a, b, c, 1.5), 1.5 * (a @ b) - 0.5 * c
            assert found.dtype == wanted.dtype
            assert np.all(np.abs(found - wanted) <= 4 * eps)
        gradient = wg.jit(wg.grad(lambda a, b: np.sum((a @ b) ** 2), (0, 1)), threads=threads)
        for m, k, n in ((5, 60, 70), (8, 70, 80), (9, 200, 90)):
            a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
            up = 2 * (a @ b)
            for x, y in zip(gradient(a, b), (up @ b.T, a.T @ up), strict=True):
                assert np.max(np.abs(x - y)) <= 20 * np.finfo(dtype).eps * np.max(np.abs(y))
    index.compiled.cache_clear()


@pytest.mark.parametrize("shape", [(13, 20, 21), (140, 300, 40), (5, 30_000, 9)])
def test_scaled_and_added(shape):
    m, k, n = shape
    rng = np.random.default_rng(3)
    a, b, c = (rng.normal(size=x) for x in ((m, k), (k, n), (m, n)))
    check(a, b, c, alpha=-0.5, beta=1.0)
    check(a, b, c, alpha=2.0, beta=0.25)


@pytest.mark.sample(1)
@pytest.mark.parametrize("m", [0, 1, 3, 4, 12, 17, 40, 200, 100_003])
def test_heights_that_are_not_known(m):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(m, 50)), rng.normal(size=(50, 20))
    compiled = Compiled(
        "matmul", {}, [(("m", 50), (50, 1), "f8"), ((50, 20), (20, 1), "f8")],
        [(("m", 20), (20, 1), "f8")],
    )  # fmt: skip
    out = np.full((m + 2, 20), 7.0)
    assert compiled([a.ctypes.data, b.ctypes.data, out[1:].ctypes.data], {"m": m}) == 0
    agree(out[1 : m + 1], a @ b)
    assert (out[[0, -1]] == 7.0).all()
    assert "dgemm" in compiled.text  # for those that are worth more than one thread


@pytest.mark.sample(3)
@pytest.mark.parametrize("k", [0, 1, 5, 70, 9_000])
def test_sums_whose_length_is_not_known(k):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(k, 13)), rng.normal(size=(k, 20))
    compiled = Compiled(
        "matmul", {}, [((13, "k"), (1, 13), "f8"), (("k", 20), (20, 1), "f8")],
        [((13, 20), (20, 1), "f8")],
    )  # fmt: skip
    out = np.full((15, 20), 7.0)
    assert compiled([a.ctypes.data, b.ctypes.data, out[1:].ctypes.data], {"k": k}) == 0
    np.testing.assert_allclose(out[1:14], a.T @ b, rtol=1e-11, atol=1e-11)
    assert (out[[0, -1]] == 7.0).all()


def test_what_is_left_to_blas():
    serves = [
        choose.suits_microkernel(Product(matrix(m, k), matrix(k, n), matrix(m, n), F64))
        for m, k, n in ((64, 64, 64), (2_000, 2_000, 2_000), (400, 1_000, 1_000))
    ]
    assert serves[1:] == [False, False]
    assert not choose.suits_microkernel(
        Product(matrix(9, 9), matrix(9, 9), matrix(9, 9), np.dtype(np.complex128))
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c8", "u8", "i2", "c16"])
def test_copies_of_transposes(dtype):
    rng = np.random.default_rng(6)
    for m, n in ((1, 5), (8, 8), (16, 16), (17, 33), (40, 9), (64, 64)):
        x = rng.normal(size=(3, m, n)).astype(dtype)
        one = np.ones((3, 1), dtype)
        wanted = np.einsum("kij,kl->kji", x, one)
        status, (found,) = run(
            "einsum", x, outputs=[wanted], strided=True, subscripts=("kij", "kji"),
        )  # fmt: skip
        assert status == 0
        assert (found == wanted).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,kj->ik", "ji,jk->ik"])
def test_large_products_on_one_thread_and_on_several(subscripts, threads):
    """The run decides between tiles and BLAS; both are right."""
    m, k, n = 3200, 513, 65
    random = np.random.default_rng(17)
    lengths = {"i": m, "j": k, "k": n}
    a, b = (
        random.normal(size=[lengths[x] for x in word]).astype(np.float32)
        for word in subscripts[:5].split(",")
    )
    product = wg.jit(lambda a, b: np.einsum(subscripts, a, b), threads=threads)
    right = np.einsum(subscripts, a.astype(float), b.astype(float), optimize=True)
    with wg.set_threads(1 if threads is None else 2):
        np.testing.assert_allclose(product(a, b), right, rtol=0, atol=1e-5 * np.abs(right).max())


@pytest.fixture
def blocked():
    """The function, its arguments taken from arrays."""
    if execution_engine.vector_bytes() < 32 or not execution_engine.has("fma"):
        pytest.skip("blocks need AVX2")
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    matrix = [pointer, integer, integer]
    kinds = [*[integer] * 3, *matrix, *matrix, pointer, *matrix[:2], *[ctypes.c_double] * 2]
    function = ctypes.CFUNCTYPE(integer, *kinds)(index.address_of(blocked_gemm.NAME))

    def run(a, b, before, c, alpha, beta):
        of_a, of_b, (row, _) = ([n // 8 for n in x.strides] for x in (a, b, c))
        sizes = (*c.shape, b.shape[0])
        factors = (a.ctypes.data, *of_a, b.ctypes.data, *of_b)
        return function(*sizes, *factors, before.ctypes.data, c.ctypes.data, row, alpha, beta)

    return run


SIZES = [
    *[(m, 19, 33) for m in (0, 1, 3, 4, 11, 12, 13, 95, 96, 97, 209)],
    *[(30, n, 40) for n in (0, 1, 7, 8, 15, 16, 17, 31, 32, 49, 100)],
    *[(14, 18, k) for k in (0, 1, 2, 9, 511, 512, 513, 1025)],
    (100, 700, 520), (2, 3, 5),
]  # fmt: skip
LAYOUTS = {
    "rows": lambda rng, m, n: rng.normal(size=(m, n)),
    "columns": lambda rng, m, n: rng.normal(size=(n, m)).T,
    "rows at the same cache lines": lambda rng, m, n: (
        rng.normal(size=(m, 1024))[:, :n] if n <= 1024 else rng.normal(size=(m, 2048))[:, :n]
    ),
    "neither": lambda rng, m, n: rng.normal(size=(2 * m, 3 * n))[::2, ::3],
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("of_b", LAYOUTS)
@pytest.mark.parametrize("of_a", LAYOUTS)
def test_blocks_of_large_matrices(of_a, of_b, blocked):
    rng = np.random.default_rng(20)
    for (m, n, k), (alpha, beta, apart) in zip(
        SIZES, itertools.cycle([(1, 0, 0), (2.5, 1, 1), (-1, -0.5, 0), (1, 1, 1)]), strict=False
    ):
        a, b = LAYOUTS[of_a](rng, m, k), LAYOUTS[of_b](rng, k, n)
        around = rng.normal(size=(m + 2, n + 5))
        begin = around.copy()
        c = around[1 : m + 1, 2 : n + 2]
        before = np.full_like(around, np.nan) if apart or not beta else around
        before = before[1 : m + 1, 2 : n + 2]
        if beta and apart:
            before[...] = rng.normal(size=(m, n))
        wanted = alpha * (a @ b) + (beta * before if beta else 0)
        status = blocked(a, b, before if apart else c, c, alpha, beta)
        assert status == 0
        scale = abs(alpha) * np.abs(a) @ np.abs(b) + 10
        assert np.all(np.abs(c - wanted) <= 1e-14 * scale), (m, n, k)
        c[...] = begin[1 : m + 1, 2 : n + 2]
        assert np.array_equal(around, begin)


@pytest.mark.parametrize("panels", [1, 100_000])
def test_blocks_with_few_columns_at_a_time(panels):
    rng = np.random.default_rng(21)
    a, b = rng.normal(size=(130, 600)), rng.normal(size=(600, 230))
    with tuning.using(gemm_panels_bytes=panels, gemm_sum_steps=64, gemm_block_rows=24):
        text = index.module_of(blocked_gemm.NAME).text(execution_engine.heading())
        address = runtime_library.loaded(
            text, {n: runtime_library.symbols()[n] for n in ("wengert_alloc", "wengert_free")},
            [blocked_gemm.NAME],
        )  # fmt: skip
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    matrix = [pointer, integer, integer]
    kinds = [*[integer] * 3, *matrix, *matrix, pointer, *matrix[:2], *[ctypes.c_double] * 2]
    c = np.empty((130, 230))
    of_c = (c.ctypes.data, c.ctypes.data, 230)
    ctypes.CFUNCTYPE(integer, *kinds)(address[blocked_gemm.NAME])(
        130, 230, 600, a.ctypes.data, 600, 1, b.ctypes.data, 230, 1, *of_c, 1.0, 0.0
    )
    np.testing.assert_allclose(c, a @ b, rtol=1e-11, atol=1e-11)


@pytest.mark.sample(1)
@pytest.mark.parametrize("m", [0, 5, 100, 301])
def test_large_products_of_unknown_sizes(m):
    rng = np.random.default_rng(22)
    product = wg.jit(lambda a, b, c, s: s * a @ b + 0.5 * c)
    gradient = wg.jit(wg.grad(lambda a, b: np.sum(np.sin(a @ b)), (0, 1)))
    for extra in (0, 1, 2, 7):  # from the second on for all sizes
        n, k = 310 + extra, 290 + 3 * extra
        a, b, c = (rng.normal(size=x) for x in ((m, k), (k, n), (m, n)))
        np.testing.assert_allclose(
            product(a, b, c, 1.5), 1.5 * a @ b + 0.5 * c, rtol=1e-10, atol=1e-11
        )
        slope = np.cos(a @ b)
        for found, wanted in zip(gradient(a, b), (slope @ b.T, a.T @ slope), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_rows_of_blocks_are_divided_among_threads():
    rng = np.random.default_rng(23)
    a, b = rng.normal(size=(333, 520)), rng.normal(size=(520, 410))
    assert choose.choose(
        Product(matrix(333, 520), matrix(520, 410), matrix(333, 410), F64)
    ).routine in ("blocked", "gemm")
    found = []
    for threads in (1, 2, 3):
        with wg.set_threads(threads):
            found.append(wg.jit(lambda a, b: a @ b, threads=threads)(a, b))
    np.testing.assert_allclose(found[0], a @ b, rtol=1e-11, atol=1e-11)
    for other in found[1:]:
        assert np.array_equal(found[0], other)


THRESHOLDS = """
    inlined_product_multiplications small_matrix_side small_matrix_multiplications
    small_matrix_batch unrolled_gemv_elements gemm_cached_bytes parallel_matmul_flops
    matmul_block_rows matmul_blocks parallel_contraction_flops streamed_bytes streamed_rows
""".split()


@pytest.mark.parametrize("name", THRESHOLDS)
def test_choose_makes_all_decisions(name):
    source = pathlib.Path(choose.__file__).parents[2]
    users = [p.name for p in source.rglob("*.py") if f"thresholds.{name}" in p.read_text("utf-8")]
    assert users == ["choose.py"]


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "routine"),
    [
        (5, 6, 7, "i4", "simd loops"),
        (4, 5, 1, "f8", "unrolled gemv"),
        (40, 50, 1, "f8", "gemv"),
        (64, 64, 64, "f8", "microkernel"),
        (400, 300, 300, "f8", "threads"),
        (2_000, 300, 300, "f4", "microkernel or gemm"),
        (2_000, 300, 300, "f8", "blocked or gemm"),
        (500, 400, 400, "f8", "blocked"),
        (dim("m"), 30, 30, "f4", "microkernel or gemm"),
        (2_000, 2_000, 2_000, "f8", "blocked or gemm"),
        (dim("m"), dim("k"), dim("n"), "f8", "blocked or gemm"),
        (2_000, 2_000, 2_000, "f4", "gemm"),
        (64, 64, 64, "c16", "gemm"),
        (8, 30_000, 2_000, "f4", "streamed"),
        (30_000, 8, 2_000, "f4", "uncached"),
    ],
)
def test_routines(m, k, n, dtype, routine):
    if execution_engine.vector_bytes() < 32 and routine.startswith(
        ("microkernel", "streamed", "blocked")
    ):
        pytest.skip("the microkernel and streams need AVX2")
    product = Product(matrix(m, k), matrix(k, n), matrix(m, n), np.dtype(dtype))
    assert choose.choose(product).routine == routine
