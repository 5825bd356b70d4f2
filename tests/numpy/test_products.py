"""Products: values of NumPy, derivatives by finite differences; contractions of all patterns."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core.op import lookup
from wengert._engine.kinds.contraction_lowering import contract
from wengert.errors import ConversionError, ShapeError
from wengert.testing import check_grads

SHAPES = {
    "dot matrices": (lambda xp, a, b: xp.dot(a, b), (2, 3), (3, 4)),
    "dot many axes": (lambda xp, a, b: xp.dot(a, b), (2, 3), (5, 3, 2)),
    "dot vector": (lambda xp, a, b: xp.dot(a, b), (2, 3), (3,)),
    "dot number": (lambda xp, a: xp.dot(2.0, a) + xp.dot(a, 3), (2, 3)),
    "vdot": (lambda xp, a, b: xp.vdot(a, b), (2, 3), (3, 2)),
    "inner": (lambda xp, a, b: xp.inner(a, b), (2, 3), (4, 3)),
    "inner number": (lambda xp, a: xp.inner(a, 2.0), (2, 3)),
    "outer": (lambda xp, a, b: xp.outer(a, b), (2, 3), (4,)),
    "matmul": (lambda xp, a, b: xp.matmul(a, b), (1, 2, 3), (4, 1, 3, 2)),
    "matmul rows": (lambda xp, a, b: xp.matmul(a, b), (3,), (2, 3, 4)),
    "vecdot": (lambda xp, a, b: xp.vecdot(a, b), (2, 1, 3), (4, 3)),
    "vecdot axis": (lambda xp, a, b: np.vecdot(a, b, axis=0), (2, 3), (2, 1)),
    "tensordot": (lambda xp, a, b: xp.tensordot(a, b), (2, 3, 4), (3, 4, 2)),
    "tensordot axes": (lambda xp, a, b: xp.tensordot(a, b, ([1, 0], [1, 2])), (2, 3, 4), (5, 3, 2)),
    "tensordot none": (lambda xp, a, b: xp.tensordot(a, b, 0), (2,), (3,)),
    "tensordot last": (lambda xp, a, b: xp.tensordot(a, b, (-1, -1)), (2, 3), (4, 3)),
    "trace": (lambda xp, a: xp.einsum("ii", a), (3, 3)),
    "traces": (lambda xp, a: xp.einsum("iij->j", a), (3, 3, 2)),
    "diagonal": (lambda xp, a: xp.einsum("iii->i", a), (3, 3, 3)),
    "implicit": (lambda xp, a, b: xp.einsum("ij, jk", a, b), (2, 3), (3, 4)),
    "implicit order": (lambda xp, a: xp.einsum("ba", a), (2, 3)),
    "ellipsis": (lambda xp, a, b: xp.einsum("...ij,...jk", a, b), (2, 3, 4), (7, 1, 4, 2)),
    "ellipsis inside": (lambda xp, a, b: xp.einsum("i...j,j...->...i", a, b), (2, 3, 4), (4, 3)),
    "sublists": (lambda xp, a, b: xp.einsum(a, [0, 1, 2], b, [2, 1], [0]), (2, 3, 4), (4, 3)),
    "sublist dots": (lambda xp, a, b: xp.einsum(a, [0, ...], b, [..., 2]), (2, 3), (3, 2)),
    "four": (
        lambda xp, a, b, c, d: xp.einsum("ab,bc,cd,d->a", a, b, c, d, optimize=True),
        *[(2, 3), (3, 4), (4, 2), (2,)],
    ),
    "length one": (lambda xp, a, b: xp.einsum("ij,ij->j", a, b), (1, 3), (2, 1)),
    "alone": (lambda xp, a, b: xp.einsum("ij,k->k", a, b), (2, 3), (4,)),
    "kron": (lambda xp, a, b: xp.kron(a, b), (2, 2, 2), (2, 3)),
    "cross": (lambda xp, a, b: xp.cross(a, b), (4, 3), (3,)),
    "cross axes": (lambda xp, a, b: xp.cross(a, b, 0, 1, 0), (3, 4), (4, 3)),
    "linalg": (
        lambda xp, a, b: xp.linalg.cross(a, b) + xp.linalg.vecdot(a, b)[:, None],
        *[(2, 3), (2, 3)],
    ),
    "linalg outer": (
        lambda xp, a, b: xp.linalg.tensordot(xp.linalg.outer(a, b), b, axes=1),
        *[(2,), (3,)],
    ),
}
if hasattr(np, "matvec"):
    SHAPES["matvec"] = (lambda xp, a, b: xp.matvec(a, b), (2, 3, 4), (4,))
    SHAPES["vecmat"] = (lambda xp, a, b: xp.vecmat(a, b), (3,), (2, 3, 4))


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", SHAPES)
def test_product(name, rng, agree):
    f, *shapes = SHAPES[name]
    agree(f, *[rng.normal(size=s) for s in shapes], order=2)


@pytest.mark.parametrize("name", "vdot matmul vecdot traces ellipsis kron cross".split())
def test_complex_product(name, rng):
    f, *shapes = SHAPES[name]
    args = [rng.normal(size=s) + 1j * rng.normal(size=s) for s in shapes]
    got = f(np, *map(wg.tensor, args)).numpy()
    np.testing.assert_allclose(got, f(np, *args), rtol=1e-13)
    check_grads(lambda *xs: f(np, *xs), args, order=2)


def test_gradient_of_squared_length_is_steepest_ascent(rng):
    z = rng.normal(size=3) + 1j * rng.normal(size=3)
    np.testing.assert_allclose(wg.grad(lambda z: np.vdot(z, z).real)(z), 2 * z)


def random_contraction(rng):
    letters = list("abcdef"[: rng.integers(1, 6)])
    length = {c: int(rng.integers(0 if rng.random() < 0.2 else 1, 4)) for c in letters}
    count = int(rng.integers(1, 5))
    words = ["".join(rng.permutation(letters)[: rng.integers(0, 5)]) for _ in range(count)]
    used = sorted(set("".join(words)))
    out = "".join(rng.permutation(used)[: rng.integers(0, len(used) + 1)]) if used else ""
    shapes = [tuple(1 if rng.random() < 0.15 else length[c] for c in w) for w in words]
    return words, out, shapes


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex128"])
def test_any_contraction_is_einsum(dtype, rng):
    for _ in range(200):
        words, out, shapes = random_contraction(rng)
        arrays = [np.asarray(rng.normal(size=s) * 3) for s in shapes]
        arrays = [a > 0 if dtype == "bool" else a.astype(dtype) for a in arrays]
        want = np.einsum(f"{','.join(words)}->{out}", *arrays)
        got = contract(*arrays, subscripts=(*words, out))
        assert got.shape == want.shape and got.dtype == want.dtype, (words, out, shapes)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str((words, out)))


def test_any_contraction_has_its_adjoint(rng):
    einsum = lookup("einsum")
    for _ in range(200):
        words, out, shapes = random_contraction(rng)
        xs = tuple(rng.normal(size=s) for s in shapes)
        dots = tuple(np.asarray(rng.normal(size=s)) for s in shapes)

        def f(*xs, subscripts=(*words, out)):
            return einsum(*xs, subscripts=subscripts)

        y, pull = wg.vjp(f, *xs)
        t = np.asarray(rng.normal(size=y.shape))
        y_dot = wg.jvp(f, xs, dots)[1]
        bars = pull(t)
        for bar, x in zip(bars, xs, strict=True):
            assert bar.shape == np.shape(x), (words, out, shapes)
        left = np.sum(t * y_dot)
        right = sum(np.sum(b * d) for b, d in zip(bars, dots, strict=True))
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=str((words, out)))


def test_operands_of_other_dtypes(rng):
    x = rng.normal(size=(2, 3))
    whole, truth = np.arange(6).reshape(3, 2), np.array([True, False, True])
    np.testing.assert_allclose(wg.grad(lambda x: (x @ whole).sum())(x), [whole.sum(1)] * 2)
    np.testing.assert_allclose(wg.grad(lambda x: (x @ truth).sum())(x), [truth * 1.0] * 2)
    single = wg.grad(lambda x: (x @ whole.astype(float)).sum())(x.astype(np.float32))
    assert single.dtype == np.float32


def test_views_and_lists(rng):
    x = rng.normal(size=(4, 6))
    check_grads(lambda x: x[::2, ::-1] @ x.T[:, 1::2], (x,))
    np.testing.assert_allclose(wg.grad(lambda x: np.dot([1.0, 2.0], x))(np.ones(2)), [1, 2])
    np.testing.assert_allclose(wg.grad(lambda x: (x @ [[1.0], [2.0]]).sum())(np.ones(2)), [1, 2])


def test_zero_cotangent_meets_infinity():
    w = np.array([[1.0, np.inf], [2.0, 3.0]])

    def f(x):
        y = x @ w
        return np.sum(np.where(np.isfinite(y), y, 0.0))

    np.testing.assert_array_equal(wg.grad(f)(np.ones((1, 2))), [[1.0, 2.0]])
    ones = np.ones((1, 2))
    np.testing.assert_array_equal(wg.jvp(lambda x: (x @ w)[0, 0], (ones,), (ones,))[1], 3.0)


def test_out(rng):
    a = rng.normal(size=(2, 2))
    x = wg.tensor(a, requires_grad=True)
    for f in (np.dot, np.matmul, np.outer, lambda p, q, out: np.einsum("ij,jk->ik", p, q, out=out)):
        out = wg.tensor(np.zeros((4, 4) if f is np.outer else (2, 2)))
        assert f(x, x, out=out) is out
        np.testing.assert_allclose(out.numpy(), f(a, a, out=None))
        assert out.requires_grad
    with pytest.raises(ConversionError):
        np.dot(x, x, out=np.zeros((2, 2)))


REFUSED = {
    "einsum lengths": lambda x: np.einsum("ij,jk", x, x),
    "einsum letters": lambda x: np.einsum("ijk", x),
    "einsum result": lambda x: np.einsum("ij->k", x),
    "einsum sign": lambda x: np.einsum("i$", x),
    "einsum twice": lambda x: np.einsum("ij->ii", x),
    "einsum count": lambda x: np.einsum("ij,jk->ik", x),
    "einsum diagonal": lambda x: np.einsum("ii", x),
    "einsum dots": lambda x: np.einsum("...->", x),
    "einsum labels": lambda x: np.einsum(x, ["a", "b"]),
    "matmul": lambda x: x @ x,
    "matmul number": lambda x: np.matmul(x, 2.0),
    "dot": lambda x: np.dot(x, x),
    "tensordot": lambda x: np.tensordot(x, x, 1),
    "tensordot axes": lambda x: np.tensordot(x, x, ([0], [0, 1])),
    "vecdot": lambda x: np.vecdot(x, 2.0),
    "cross": lambda x: np.cross(x, x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_error(name):
    with pytest.raises(ShapeError, match=r"test_products\.py"):
        REFUSED[name](wg.tensor(np.ones((3, 4)), requires_grad=True))


def test_plain_arrays_give_the_results_of_numpy(rng):
    a = rng.normal(size=(2, 3))
    for name in ("dot", "inner", "outer", "tensordot", "kron"):
        got = getattr(wnp, name)(a, a.T if name == "dot" else a)
        assert type(got) is type(getattr(np, name)(a, a.T if name == "dot" else a))
        np.testing.assert_array_equal(got, getattr(np, name)(a, a.T if name == "dot" else a))
