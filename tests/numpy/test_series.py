"""numpy.polynomial: values of NumPy for tensors, derivatives in points and coefficients."""

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, legendre
from numpy.polynomial.polynomial import polyval

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import ConversionError, OperandError, ShapeError
from wengert.testing import grad_checks
from wengert.testing.op_checks import check_traced

C = np.array([0.3, -0.7, 1.1, 0.4])
D = np.array([0.9, 0.2, -0.5])
M = np.array([[0.3, -0.7, 1.1], [0.4, 0.6, -0.2]])
T = np.linspace(-1.0, 1.0, 12).reshape(2, 2, 3)
X = np.array([-0.8, 0.1, 0.6])
Y = np.array([0.4, -0.3, 0.9])
FAMILIES = {
    "polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "laguerre": "lag",
    "hermite": "herm", "hermite_e": "herme",
}  # fmt: skip

CASES = {
    "val": lambda f: (f("val"), (X, C)),
    "val of a number": lambda f: (lambda x, c: f("val")(x[0], c), (X, C)),
    "val of a matrix": lambda f: (f("val"), (X, M)),
    "val by columns": lambda f: (lambda x, c: f("val")(x, c, tensor=False), (X, M)),
    "val2d": lambda f: (f("val2d"), (X, Y, M)),
    "val3d": lambda f: (f("val3d"), (X, Y, X * Y, T)),
    "grid2d": lambda f: (f("grid2d"), (X, Y[:2], M)),
    "grid3d": lambda f: (f("grid3d"), (X, Y[:2], X[:1], T)),
    "vander": lambda f: (lambda x: f("vander")(x, 3), (X,)),
    "vander2d": lambda f: (lambda x, y: f("vander2d")(x, y, [1, 2]), (X, Y)),
    "vander3d": lambda f: (lambda x, y: f("vander3d")(x, y, x * y, [1, 2, 1]), (X, Y)),
    "div": lambda f: (f("div"), (C, D)),
    "div by more": lambda f: (f("div"), (D, C)),
    "div by a number": lambda f: (lambda c, d: f("div")(c, d[:1]), (C, D)),
    "trim": lambda f: (lambda c: f("trim")(c, 0.5), (C,)),
    "companion": lambda f: (f("companion"), (C,)),
    "line": lambda f: (lambda d: f("line")(d[0], d[1]), (D,)),
    "der": lambda f: (f("der"), (C,)),
    "der twice": lambda f: (lambda c: f("der")(c, 2, 3.0, axis=1), (M,)),
    "der of none": lambda f: (lambda c: f("der")(c, 5), (C,)),
    "int": lambda f: (f("int"), (C,)),
    "int twice": lambda f: (lambda c, k: f("int")(c, 2, [k[0], k[1]], 0.3, 2.0), (C, D)),
    "int of rows": lambda f: (lambda c: f("int")(c, 1, axis=1), (M,)),
    "add": lambda f: (f("add"), (C, D)),
    "sub": lambda f: (f("sub"), (C, D)),
    "mul": lambda f: (f("mul"), (C, D)),
    "mulx": lambda f: (f("mulx"), (C,)),
    "pow": lambda f: (lambda c: f("pow")(c, 3), (D,)),
    "pow 0": lambda f: (lambda c: f("pow")(c, 0) * c[0], (D,)),
    "fromroots": lambda f: (f("fromroots"), (D,)),
    "roots": lambda f: (f("roots"), (np.array([0.3, -2.5, 0.2, 1.0]),)),
    "fit": lambda f: (lambda x, y: f("fit")(x, y, 1), (X, Y)),
    "fit weighted": lambda f: (lambda x, y, w: f("fit")(x, y, 1, w=w), (X, Y, D)),
    "to powers": lambda f: (f("%2poly"), (C,)),
    "from powers": lambda f: (f("poly2%"), (C,)),
}


def finder(module, short):
    return lambda what: getattr(module, what.replace("%", short) if "%" in what else short + what)


BOTH = [(n, c) for n in FAMILIES for c in CASES if n != "polynomial" or "powers" not in c]


@pytest.mark.sample(36)
@pytest.mark.parametrize("name, case", BOTH)
def test_tensors_agree_with_numpy(name, case):
    short = FAMILIES[name]
    theirs, args = CASES[case](finder(getattr(np.polynomial, name), short))
    ours, _ = CASES[case](finder(getattr(wnp.polynomial, name), short))
    wants, plains = (f(*args) if "div" in case else (f(*args),) for f in (theirs, ours))
    gots = ours(*map(wg.tensor, args))
    for want, plain, got in zip(wants, plains, gots if "div" in case else (gots,), strict=True):
        assert type(plain) is type(want)
        np.testing.assert_array_equal(plain, want)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-12)
    grad_checks.check_grads(ours, args, order=1)
    if case not in ("roots", "trim"):  # without a graph, or a complex one
        check_traced(ours, args, sizes=False)


@pytest.mark.slow
@pytest.mark.parametrize("name, case", BOTH)
def test_order_two(name, case):
    ours, args = CASES[case](finder(getattr(wnp.polynomial, name), FAMILIES[name]))
    grad_checks.check_grads(ours, args, order=2)


@pytest.mark.parametrize("tensor, roots", [(True, M), (True, C), (False, M.T)])
def test_values_from_roots(tensor, roots):
    x = X if tensor else X[:2]
    want = np.polynomial.polynomial.polyvalfromroots(x, roots, tensor)
    f = wnp.polynomial.polynomial.polyvalfromroots
    np.testing.assert_allclose(f(wg.tensor(x), wg.tensor(roots), tensor).numpy(), want, rtol=1e-14)
    grad_checks.check_grads(lambda x, r: f(x, r, tensor), (x, roots), order=2)


def test_zeros_behind_are_trimmed_as_numpy_does():
    c = np.array([1.0, 2.0, 0.0])
    for what in ("chebadd", "chebsub", "chebmul"):
        got = getattr(wnp.polynomial.chebyshev, what)(wg.tensor(c), c)
        np.testing.assert_array_equal(got.numpy(), getattr(np.polynomial.chebyshev, what)(c, c))


def test_precision_and_complex_numbers_are_kept():
    x, c = X.astype(np.float32), C.astype(np.float32)
    got = wnp.polynomial.legendre.legval(wg.tensor(x), wg.tensor(c))
    assert got.dtype == np.polynomial.legendre.legval(x, c).dtype == np.float32
    z = X + 1j * Y
    got = wnp.polynomial.hermite.hermval(wg.tensor(z), C)
    np.testing.assert_allclose(got.numpy(), np.polynomial.hermite.hermval(z, C), rtol=1e-13)


def test_invalid_arguments_are_errors():
    x = wg.tensor(X)
    with pytest.raises(ShapeError, match="chebgrid2d"):
        wnp.polynomial.chebyshev.chebval2d(x, x[:2], M)
    with pytest.raises(OperandError, match="full"):
        wnp.polynomial.chebyshev.chebfit(x, Y, 1, full=True)
    with pytest.raises(ValueError):
        wnp.polynomial.chebyshev.chebpow(x, -1)


def test_classes_are_numpys():
    assert wnp.polynomial.Chebyshev is np.polynomial.Chebyshev
    assert wnp.polynomial.chebyshev.chebgauss is np.polynomial.chebyshev.chebgauss


def test_functions_of_numpy_are_replaced_in_converted_functions():
    for f in (
        lambda c: np.polynomial.polynomial.polyval(2.0, c),
        lambda c: polyval(2.0, c),
        lambda c: legendre.legval(2.0, legendre.poly2leg(c)),
    ):
        np.testing.assert_allclose(wg.grad(f)(D), [1.0, 2.0, 4.0])
        np.testing.assert_allclose(wg.jit(wg.grad(f))(D), [1.0, 2.0, 4.0])


def test_families_are_modules():
    from wengert.numpy.polynomial.chebyshev import chebval

    assert chebval is wnp.polynomial.chebyshev.chebval


@pytest.mark.parametrize(
    ("f", "remedy"),
    [
        (lambda c: Chebyshev(c)(0.5), r"chebyshev with the coefficients, chebval\(x, c\)"),
        (lambda x: Chebyshev(C)(x), r"those of a series p are p.convert\(\).coef"),
        (lambda x: Chebyshev.fit(x, X, 1).coef, "np.polynomial.Chebyshev accepts plain arrays"),
        (lambda c: polyval(0.5, c), "call wengert.numpy.polynomial.polynomial.polyval"),
        (lambda c: legendre.leg2poly(c), "call wengert.numpy.polynomial.legendre.leg2poly"),
    ],
)
def test_classes_and_functions_of_numpy_name_what_to_call(f, remedy):
    x = wg.tensor(X, requires_grad=True)
    with pytest.raises(ConversionError, match=remedy):
        f(x)
