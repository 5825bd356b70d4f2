"""Cholesky, QR, eigenvalue and singular value kernels against the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import lookup

from .kernel_driver import agree, run

DTYPES = ["f4", "f8", "c8", "c16", "i4"]
SHAPES = [(3, 3), (2, 1, 4, 4), (1, 1), (20, 20)]
TALL = [(5, 3), (3, 5), (2, 4, 2), (2, 2, 4), (1, 4), (4, 1), (40, 12)]


def some(dtype, *lists):
    """Shapes: all of them for float64, the first two of each list for the others."""
    return [shape for shapes in lists for shape in (shapes if dtype == "f8" else shapes[:2])]


def draw(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return rng.integers(-5, 6, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def check(name, *operands, strided=False, tolerance=None, **params):
    with np.errstate(all="ignore"):
        wanted = lookup(name).run(*operands, **params)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    status, found = run(name, *operands, outputs=wanted, strided=strided, **params)
    assert status == 0
    for x, y in zip(found, wanted, strict=True):
        agree(x, y, tolerance)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, upper):
    rng = np.random.default_rng(0)
    for shape in some(dtype, SHAPES, [(0, 0), (0, 2, 2)]):
        x = draw(rng, shape, dtype)
        x = (x @ x.mT.conj() + 9 * np.eye(shape[-1])).astype(dtype)
        x += (
            np.triu(draw(rng, shape, dtype), 1)
            if not upper
            else np.tril(draw(rng, shape, dtype), -1)
        )
        check("cholesky", x, upper=upper)
    check("cholesky", x.mT, strided=True, upper=upper)
    assert run("cholesky", -np.eye(3), outputs=[np.eye(3)], upper=upper)[0] == 1
    check("cholesky", np.full((2, 2), np.nan), upper=upper)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype):
    rng = np.random.default_rng(1)
    for shape in some(dtype, SHAPES, TALL):
        x = draw(rng, shape, dtype)
        check("qr", x)
        check("qr", x.mT, strided=True)
    for shape in [(5, 3), (2, 4, 1), (3, 3), (40, 12)]:
        check("completing_columns", draw(rng, shape, dtype))


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_eigh(dtype, lower):
    rng = np.random.default_rng(2)
    for shape in some(dtype, SHAPES, [(0, 0), (0, 2, 2)]):
        x = draw(rng, shape, dtype)
        check(
            "eigh",
            (x + x.mT.conj()).astype(dtype),
            lower=lower,
            tolerance=1e-3 if dtype in ("f4", "c8") else 1e-10,
        )
    check("eigh", x.mT, strided=True, lower=lower)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    rng = np.random.default_rng(3)
    tolerance = 2e-4 if dtype in ("f4", "c8") else 1e-10
    for shape in some(dtype, SHAPES, [(0, 0), (0, 2, 2)]):
        check("eig", draw(rng, shape, dtype), tolerance=tolerance)
    check("eig", draw(rng, (2, 5, 5), dtype).mT, strided=True, tolerance=tolerance)
    check("eig", np.array([[0, 1], [-1, 0]]).astype(dtype), tolerance=tolerance)


def test_eig_refuses_what_is_not_finite():
    for bad in (np.nan, np.inf, -np.inf):
        x = np.eye(3)
        x[1, 2] = bad
        outputs = [np.ones(3) * 1j, np.eye(3) * 1j]
        assert run("eig", x, outputs=outputs)[0] == 1
        assert run("eig", x * (1 + 1j), outputs=outputs)[0] == 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype, full):
    rng = np.random.default_rng(4)
    tolerance = 2e-4 if dtype in ("f4", "c8") else 1e-10
    for shape in some(dtype, SHAPES, TALL):
        x = draw(rng, shape, dtype)
        check("svd", x, full_matrices=full, tolerance=tolerance)
        check("svd", x.mT, strided=True, full_matrices=full, tolerance=tolerance)


def test_svd_refuses_nan():
    outputs = [np.eye(3), np.ones(3), np.eye(3)]
    assert run("svd", np.full((3, 3), np.nan), outputs=outputs)[0] == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_pinv(dtype):
    rng = np.random.default_rng(5)
    tolerance = 2e-4 if dtype in ("f4", "c8") else 1e-10
    for shape in some(dtype, SHAPES, TALL):
        check("pinv", draw(rng, shape, dtype), tolerance=tolerance)
    flat = draw(rng, (5, 2), dtype) @ draw(rng, (2, 4), dtype)
    check("pinv", flat, rtol=1e-4, tolerance=tolerance)
    check("pinv", np.zeros((3, 2), dtype))


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_rank(dtype):
    rng = np.random.default_rng(6)
    for shape in some(dtype, SHAPES, TALL):
        check("matrix_rank", draw(rng, shape, dtype))
    check("matrix_rank", draw(rng, (5, 2), dtype) @ draw(rng, (2, 4), dtype))
    check("matrix_rank", np.diag([3, 2, 0]).astype(dtype), tol=2.5)
    check("matrix_rank", np.diag([3, 2, 0]).astype(dtype), rtol=0.7)
    check("matrix_rank", np.zeros((3, 3), dtype))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_vectors_that_nobody_reads_are_not_computed(dtype):
    rng = np.random.default_rng(8)
    g = rng.normal(size=(2, 12, 12)).astype(dtype)
    tall = rng.normal(size=(2, 12, 5)).astype(dtype)
    for fun, a in [
        (np.linalg.eigvalsh, g + np.conj(g.mT)),
        (lambda a: np.linalg.eigh(a)[0], g + np.conj(g.mT)),
        (lambda a: np.linalg.svd(a, compute_uv=False), tall),
        (lambda a: np.linalg.svd(a)[1], tall),
    ]:
        compiled = wg.jit(fun, host_callbacks="forbid")
        assert not {"@letter.V", "@letter.S", "@letter.A"} & set(
            re.findall(r"@letter\.\w", compiled.lower(a).llvm_ir)
        )
        agree(compiled(a), fun(a))
    both = wg.jit(lambda a: (np.linalg.eigvalsh(a), np.linalg.eigh(a)[1]), host_callbacks="forbid")
    a = g + np.conj(g.mT)
    agree(both(a)[0], np.linalg.eigvalsh(a))
    agree(np.abs(both(a)[1]), np.abs(np.linalg.eigh(a)[1]), 1e-5 if dtype == "f4" else 1e-9)
    half = wg.jit(lambda a: np.linalg.svd(a, full_matrices=False)[0], host_callbacks="forbid")
    agree(np.abs(half(tall)), np.abs(np.linalg.svd(tall, full_matrices=False)[0]), 1e-5)
