"""NumPy's elementwise functions: NumPy's results on arrays and on tensors, for every dtype.

The derivatives are the matter of tests/laws; here the question is whether a tensor is a faithful
stand-in for an array: value, dtype, shape, `out=`, `where=`, several results, refusals.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core.handle import Handle, value_of
from wengert.errors import DtypeError
from wengert.numpy import elementwise
from wengert.testing import check_grads

DTYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
UFUNCS = sorted({name for name in elementwise.__all__ if isinstance(getattr(np, name), np.ufunc)})
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logs of 0 and the like


def operand(dtype, k):
    numbers = np.array([[0, 1, 2], [3, 5, 7]]) if k == 0 else np.array([2, 1, 3])
    return numbers.astype(dtype)


def same(got, want):
    gots = got if isinstance(got, tuple) else (got,)
    wants = want if isinstance(want, tuple) else (want,)
    assert len(gots) == len(wants)
    for g, w in zip(gots, wants, strict=True):
        assert isinstance(g, Handle)
        g = value_of(g)
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(g, w)


def test_every_ufunc_of_single_elements_is_there():
    everything = {
        name
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).signature is None
    }
    assert everything - set(UFUNCS) <= {"isnat"}  # of dates, which no tensor holds


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_are_those_of_numpy(name):
    assert getattr(wnp, name) is getattr(np, name)


@pytest.mark.sample(42)
@pytest.mark.parametrize("name", UFUNCS)
def test_every_dtype(name):
    """Tensors have bitwise the results of NumPy, and raise where NumPy raises."""
    f = getattr(np, name)
    for dtype in DTYPES:
        second = "i8" if name == "ldexp" else dtype
        args = [operand(dtype, 0), operand(second, 1)][: f.nin]
        try:
            want = f(*args)
        except (TypeError, ValueError):
            with pytest.raises((TypeError, ValueError)):
                f(*map(wg.tensor, args))
            continue
        same(f(*map(wg.tensor, args)), want)
        if f.nin == 2:
            same(f(args[0], wg.tensor(args[1])), want)
            same(f(wg.tensor(args[0]), args[1]), want)


@pytest.mark.parametrize("name", [n for n in UFUNCS if getattr(np, n).nin == 2])
def test_python_numbers_are_weak(name):
    f = getattr(np, name)
    for dtype, number in [("f4", 2.0), ("f2", 2), ("i4", 2), ("c8", 2.0), ("u1", 3)]:
        x = operand(dtype, 0)
        number = 2 if name == "ldexp" else number
        try:
            want = f(x, number)
        except TypeError:
            continue
        same(f(wg.tensor(x), number), want)


@pytest.mark.parametrize("name", ["exp", "add", "maximum", "less", "arctan2", "sqrt"])
def test_out_and_where(name):
    f = getattr(np, name)
    args = [operand("f8", k) for k in range(f.nin)]
    dtype = f(*args).dtype
    mask = np.array([True, False, True])
    want, got = np.full((2, 3), 7, dtype), wg.tensor(np.full((2, 3), 7, dtype))
    f(*args, out=want, where=mask)
    returned = f(*map(wg.tensor, args), out=got, where=mask)
    assert returned is got
    same(got, want)
    same(f(*map(wg.tensor, args), dtype=None), f(*args))


def test_out_is_differentiated():
    def f(x):
        y = wg.tensor(np.zeros(3))
        np.exp(x, out=y)
        return (y * x).sum()

    check_grads(f, (np.array([0.1, 0.2, -1.0]),))


def test_two_results():
    x = np.array([2.75, -0.5, 0.0, 10.0])
    same(np.modf(wg.tensor(x)), np.modf(x))
    same(np.frexp(wg.tensor(x)), np.frexp(x))
    same(np.divmod(wg.tensor(x), 0.75), np.divmod(x, 0.75))
    same(divmod(wg.tensor(x), 0.75), divmod(x, 0.75))
    check_grads(lambda x: np.modf(x)[0] * np.modf(x)[1], (np.array([2.75, -0.5]),))
    check_grads(lambda x: np.frexp(x)[0] * x, (np.array([2.75, -0.7]),))
    check_grads(lambda x, y: np.divmod(x, y)[1] * x, (np.array([2.75, 0.5]), np.array([0.8, -0.3])))


FUNCTIONS = {
    "sinc": lambda xp, x: xp.sinc(x),
    "clip": lambda xp, x: xp.clip(x, 0.5, 1.5),
    "clip one": lambda xp, x: xp.clip(x, None, 1.5),
    "clip new names": lambda xp, x: xp.clip(x, min=0.5),
    "clip none": lambda xp, x: xp.clip(x, None, None),
    "clip arrays": lambda xp, x: xp.clip(x, x - 1, np.array([1.0, 2.0, 0.5, 9.0])),
    "round": lambda xp, x: xp.round(x, 1),
    "around": lambda xp, x: xp.around(x),
    "fix": lambda xp, x: xp.fix(x),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "nan_to_num given": lambda xp, x: xp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3.0),
    "real": lambda xp, x: xp.real(x),
    "imag": lambda xp, x: xp.imag(x),
    "angle": lambda xp, x: xp.angle(x),
    "angle deg": lambda xp, x: xp.angle(x, deg=True),
    "real_if_close": lambda xp, x: xp.real_if_close(x),
    "unwrap": lambda xp, x: xp.unwrap(x * 4),
    "isclose": lambda xp, x: xp.isclose(x, x + 1e-9),
    "isreal": lambda xp, x: xp.isreal(x),
    "iscomplex": lambda xp, x: xp.iscomplex(x),
    "isposinf": lambda xp, x: xp.isposinf(x),
    "isneginf": lambda xp, x: xp.isneginf(x),
    "sign": lambda xp, x: xp.sign(x),
}
POINTS = {
    "float64": np.array([-2.7, 0.3, 1.2, 4.0]),
    "float32": np.array([-2.7, 0.3, 1.2, 4.0], np.float32),
    "0-d": np.array(1.25),
    "empty": np.zeros((0, 4)),
    "int": np.array([3, -1, 0, 5]),
    "special": np.array([np.nan, np.inf, -np.inf, -0.0]),
    "complex": np.array([1 + 2j, -1.5 + 0j, 2 - 0.3j, 0.1j]),
}


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # by NumPy 2.5
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, point):
    f, x = FUNCTIONS[name], POINTS[point]
    if name == "clip arrays" and x.shape != (4,):
        x = x.reshape(-1, 1)
    try:
        want = f(np, np.array(x))
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):
            f(np, wg.tensor(x))
        return
    for xp in (np, wnp):
        got = value_of(f(xp, wg.tensor(x)))
        assert np.shape(got) == np.shape(want) and got.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=0)
    plain = f(wnp, np.array(x))
    assert type(plain) is type(want)
    np.testing.assert_array_equal(plain, want)


def test_kinds_of_objects():
    z = wg.tensor([1j])
    assert np.iscomplexobj(z) and not np.isrealobj(z)
    assert np.isrealobj(z.real)


@pytest.mark.parametrize("name", ["sinc", "clip", "unwrap", "nan_to_num"])
def test_derivatives_of_compositions(name):
    check_grads(lambda x: FUNCTIONS[name](np, x), (np.array([-2.7, 0.3, 1.2, 4.1]),))


@pytest.mark.parametrize("name", ["real", "imag", "angle", "sign", "nan_to_num", "sinc"])
def test_derivatives_of_complex_functions(name):
    check_grads(lambda x: FUNCTIONS[name](np, x), (np.array([1 + 2j, -1.5 + 0.1j, 0.4 - 0.3j]),))


def test_real_and_imaginary_parts_are_views():
    def f(x):
        z = wg.tensor(np.zeros(2, complex))
        z.real[...] = x
        z.imag[0] = 3.0 * x[1]
        return (z * z).imag.sum()  # 2 re im

    x = np.array([2.0, 5.0])
    assert wg.grad(f)(x).tolist() == [30.0, 12.0]


def test_nan_to_num_in_place():
    x = wg.tensor([1.0, np.nan])
    assert np.nan_to_num(x, copy=False) is x
    assert x.numpy().tolist() == [1.0, 0.0]


def test_errors_name_the_operation():
    with pytest.raises(DtypeError, match="arctan2"):
        np.arctan2(wg.tensor([1j]), 1.0)
    with pytest.raises(DtypeError, match="bitwise_and"):
        np.bitwise_and(wg.tensor([1.0]), 1)


def test_methods():
    x = wg.tensor([-1.25, 0.5, 3.0])
    assert x.clip(0, 1).numpy().tolist() == [0, 0.5, 1]
    assert x.round(1).numpy().tolist() == [-1.2, 0.5, 3.0]
    assert x.conj() is x
    assert wg.tensor([1 + 2j]).conj().numpy().tolist() == [1 - 2j]
