"""Linear systems, inverses and determinants as kernels, compared with the interpreter's run."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.scipy.linalg.lu_ldl_cho_solve import exchanges

from .kernel_driver import Compiled, agree, run

DTYPES = ["f4", "f8", "c8", "c16", "i4", "?"]


def some(dtype, shapes):
    """Shapes: all of them for float64, the first three for the others."""
    return shapes if dtype == "f8" else shapes[:3]


def draw(rng, shape, dtype):
    """Matrices away from singular ones."""
    dtype = np.dtype(dtype)
    x = rng.normal(size=shape)
    if dtype.kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if dtype.kind in "iu":
        x = rng.integers(-5, 6, shape)
    if dtype.kind == "b":
        x = rng.random(shape) < 0.3
    if len(shape) > 1 and shape[-1] == shape[-2]:
        x = (
            np.tril(x) | np.eye(shape[-1], dtype=bool)
            if dtype.kind == "b"
            else x + 11 * np.eye(shape[-1])
        )
    return x.astype(dtype)


def check(name, *operands, strided=False, tolerance=None, **params):
    with np.errstate(all="ignore"):
        wanted = lookup(name).run(*operands, **params)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    status, found = run(name, *operands, outputs=wanted, strided=strided, **params)
    assert status == 0
    for x, y in zip(found, wanted, strict=True):
        agree(x, y, tolerance)


def refused(name, *operands, outputs, **params):
    """Whether the step fails."""
    return run(name, *operands, outputs=outputs, **params)[0] == 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve(dtype):
    rng = np.random.default_rng(0)
    pairs = [
        ((4, 4), (4,)),
        ((4, 4), (4, 3)),
        ((2, 3, 3), (2, 3, 2)),
        ((2, 1, 3, 3), (4, 3, 1)),
        ((2, 3, 3), (3,)),
        ((0, 0), (0, 2)),
        ((0, 3, 3), (3,)),
        ((3, 3), (3, 0)),
        ((20, 20), (20, 5)),
    ]
    for a, b in some(dtype, pairs):
        check("solve", draw(rng, a, dtype), draw(rng, b, dtype))
    check("solve", draw(rng, (3, 3), dtype), rng.normal(size=3).astype("f4"))
    check("solve", draw(rng, (3, 3), dtype).T, draw(rng, (6, 6), dtype)[::2, 1:4], strided=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "det_derivative"])
def test_one_matrix(name, dtype):
    rng = np.random.default_rng(1)
    if name == "det_derivative" and np.dtype(dtype).kind not in "fc":
        dtype = np.float64  # a derivative is of real or complex matrices
    for shape in some(dtype, [(3, 3), (2, 1, 4, 4), (0, 0), (1, 1), (0, 2, 2), (20, 20)]):
        check(name, draw(rng, shape, dtype))
    x = draw(rng, (2, 3, 3), dtype)
    check(name, x.mT, strided=True)
    check(name, x[:, ::-1][:, :, [2, 1, 0]][::-1], strided=True)


def test_signs_of_determinants():
    rng = np.random.default_rng(2)
    for _ in range(10):
        x = rng.normal(size=(5, 5))
        check("det", x)
        check("slogdet", x)
        check("slogdet", x + 1j * rng.normal(size=(5, 5)))
    check("det", np.diag([1e200, 1e200, 1e-300]))
    check("det", np.array([[1.0, np.nan], [2.0, 1.0]]))


def test_singular_matrices():
    flat = np.outer([1.0, 2.0], [3.0, 6.0])
    check("det", np.zeros((3, 3)))
    check("det", flat)
    check("slogdet", flat)
    check("slogdet", flat * 1j)
    check("det_derivative", flat)  # of two and three rows by formula
    check("det_derivative", np.arange(9.0).reshape(3, 3))
    wide = np.kron(np.eye(3), flat)
    for name, x in (("inv", flat), ("det_derivative", wide)):
        assert refused(name, x, outputs=[x])
        assert refused(name, np.stack([np.eye(len(x)), x]), outputs=[np.stack([x, x])])
    assert refused("solve", flat, np.ones(2), outputs=[np.ones(2)])
    near = np.kron(np.eye(2), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]))
    assert refused("det_derivative", near, outputs=[near])
    near = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    check("det_derivative", near)


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("lower", [False, True])
def test_triangles(dtype, trans, lower):
    rng = np.random.default_rng(3)
    flags = {"trans": trans, "lower": lower}
    pairs = [
        ((4, 4), (4,)),
        ((4, 4), (4, 3)),
        ((2, 3, 3), (2, 3, 2)),
        ((2, 1, 3, 3), (4, 3, 1)),
        ((0, 0), (0,)),
        ((3, 3), (3, 0)),
        ((0, 3, 3), (3,)),
    ]
    for a, b in some(dtype, pairs):
        check("solve_triangular", draw(rng, a, dtype), draw(rng, b, dtype), **flags)
    x = draw(rng, (2, 5, 5), dtype)
    flags["unit_diagonal"] = True
    check("solve_triangular", x, draw(rng, (5, 2), dtype), tolerance=1e-3, **flags)
    check(
        "solve_triangular", x.mT, draw(rng, (2, 5), dtype).T, strided=True, tolerance=1e-3, **flags
    )


def test_triangles_of_two_dtypes():
    rng = np.random.default_rng(4)
    check("solve_triangular", draw(rng, (3, 3), "f4"), draw(rng, (3,), "f8"))
    check("solve_triangular", draw(rng, (3, 3), "f8"), draw(rng, (3, 2), "c8"), trans="C")


def test_a_zero_on_the_diagonal():
    a = np.triu(np.ones((3, 3)))
    a[1, 1] = 0.0
    assert refused("solve_triangular", a, np.ones(3), outputs=[np.ones(3)])
    check("solve_triangular", a, np.ones(3), unit_diagonal=True)
    assert refused("solve_triangular", a * 1j, np.ones(3), outputs=[np.ones(3) * 1j])


def test_sizes_that_are_not_known():
    square, rows = (("b", "n", "n"), ("n*n", "n", 1), "f8"), (("b", "n", 2), ("2*n", 2, 1), "f8")
    solve = Compiled("solve", {}, [square, rows], [rows])
    eigh = Compiled("eigh", {}, [square], [(("b", "n"), ("n", 1), "f8"), square])
    triangle = Compiled("solve_triangular", {"lower": True}, [square, rows], [rows])
    rng = np.random.default_rng(5)
    for b, n in [(1, 1), (3, 4), (2, 30)]:
        sizes = {"b": b, "n": n}
        a, c = draw(rng, (b, n, n), "f8"), draw(rng, (b, n, 2), "f8")
        x, w, v = np.full(c.shape, np.nan), np.full((b, n), np.nan), np.full(a.shape, np.nan)
        assert solve([y.ctypes.data for y in (a, c, x)], sizes) == 0
        agree(x, np.linalg.solve(a, c))
        assert triangle([y.ctypes.data for y in (a, c, x)], sizes) == 0
        agree(x, np.linalg.solve(np.tril(a), c))
        assert eigh([y.ctypes.data for y in (a, w, v)], sizes) == 0
        agree(w, np.linalg.eigh(a)[0])
        agree(np.abs(v), np.abs(np.linalg.eigh(a)[1]), 1e-9)


@pytest.mark.parametrize("order", [[0, 5, 1], [0, -1, 2], [0, 10**9, 1]])
def test_an_order_without_such_a_row_is_refused(order):
    compiled = wg.jit(exchanges)
    assert np.array_equal(compiled(np.array([1, 2, 0])), [1, 2, 2])
    with pytest.raises(wg.WengertError, match="not in list"):
        compiled(np.array(order))


def test_the_gradient_of_a_few_unknowns_is_elementwise():
    """The outer product of two vectors in registers needs no loop of a product."""

    def nodes(n):
        gradient = wg.grad(lambda a: np.sum(np.linalg.solve(a, np.arange(1.0, n + 1.0))))
        return {node.op.name for node in wg.trace(gradient)(np.eye(n)).simplify()}

    assert "matmul" not in nodes(3)
    assert "matmul" in nodes(9)
