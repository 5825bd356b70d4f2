"""Faults of types, rules and messages that were each a few lines; the name says which."""

import importlib
import math
import pkgutil

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.testing import check_grads

DTYPES = [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128]
WHOLE = [np.bool_, np.int8, np.uint16, np.int32, np.int64]


def same(ours, plain):
    """The same dtypes, shapes and values, to the rounding of a few operations."""
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (ours, plain)], strict=True):
        a, b = (np.asarray(r.numpy() if isinstance(r, wg.Tensor) else r) for r in (a, b))
        assert a.dtype == b.dtype and a.shape == b.shape
        rounding = 8 * np.finfo(b.dtype).eps if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, rtol=rounding)


# ---- dtypes that were not NumPy's --------------------------------------------------------------


RANGES = {
    "linspace": lambda a: np.linspace(a, 3.0, 4, retstep=True),
    "linspace of integers": lambda a: np.linspace(a, 3, 4, retstep=True),
    "linspace of arrays": lambda a: np.linspace(a, np.array([1, 2], np.float32), 4, retstep=True),
    "linspace without end": lambda a: np.linspace(1.0, a, 3, endpoint=False, retstep=True),
    "linspace of a dtype": lambda a: np.linspace(a, 3.0, 4, retstep=True, dtype=np.float32),
    "logspace": lambda a: np.logspace(a, 3.0, 4),
    "logspace of itself": lambda a: np.logspace(a, a, 4),
    "logspace by base": lambda a: np.logspace(1.0, np.float32(2.0), 4, base=a),
    "logspace of a dtype": lambda a: np.logspace(a, 3.0, 4, dtype=np.float32),
    "geomspace": lambda a: np.geomspace(a, 3.0, 4),
    "geomspace of itself": lambda a: np.geomspace(a, a + a, 4),
    "geomspace of a dtype": lambda a: np.geomspace(a, 3.0, 4, dtype=np.float32),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("value", [2, [2, 1]])
@pytest.mark.parametrize("dtype", DTYPES + WHOLE)
@pytest.mark.parametrize("name", RANGES)
def test_dtype_of_ranges(name, dtype, value):
    a = np.array(value, dtype)[()]
    same(RANGES[name](wg.tensor(a)), RANGES[name](a))


def test_dtype_of_ranges_between_a_recorded_python_number_and_single_precision():
    seen = []

    def total(x):
        seen.append(np.linspace(x, np.float32(3), 3))
        return np.sum(seen[-1]).astype(float)

    assert wg.grad(total)(2.0) == 1.5
    assert seen[0].dtype == np.linspace(2.0, np.float32(3), 3).dtype


@pytest.mark.parametrize("dtype", DTYPES + WHOLE)
def test_dtype_of_sort_complex(dtype):
    a = np.array([2, 1, 0], dtype)
    same(np.sort_complex(wg.tensor(a)), np.sort_complex(a))


@pytest.mark.parametrize("dtype", DTYPES[:4] + WHOLE[1:])
def test_dtype_of_histogram(dtype):
    a = np.array([0, 1, 1, 3, 7, 7], dtype)
    for options in ({}, {"density": True}, {"range": (0.0, 4.0)}, {"weights": a}):
        same(np.histogram(wg.tensor(a), 3, **options), np.histogram(a, 3, **options))
    edges = np.array([0, 1, 7], np.float32)
    for density in (False, True):
        same(
            np.histogram(wg.tensor(a), edges, density=density),
            np.histogram(a, edges, None, density),
        )


def test_histogram_of_single_precision_counts_with_numpys_edges(rng):
    a = rng.normal(size=1000).astype(np.float32)
    for bins in (3, 10, 97):
        counts, edges = np.histogram(wg.tensor(a), bins)
        wanted, at = np.histogram(a, bins)
        assert np.array_equal(edges.numpy(), at) and np.array_equal(counts.numpy(), wanted)
    slope = wg.jacobian(lambda x: np.histogram(x, 2)[1])(np.float32([0, 1, 2]))
    assert slope.tolist() == [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1]] and slope.dtype == np.float32


# ---- rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_larger_and_smaller_of_a_python_float_and_a_python_complex(f):
    for z in (2j, 1j + 2):
        chosen = float(f(1.0, z) == 1.0)
        assert wg.grad(lambda x, z=z: np.real(f(x, z)))(1.0) == chosen
        assert wg.grad(lambda x, z=z: np.real(f(z, x)))(1.0) == chosen
        twice = wg.grad(wg.grad(lambda x, z=z: np.real(f(x, z)) * x))
        assert twice(1.0) == 2.0 * chosen
    assert wg.grad(wg.grad(lambda x: np.real(f(x, 1.0 + 0j)) * x))(1.0) == 1.0  # a tie


def test_clip_between_a_python_float_and_a_python_complex():
    twice = wg.grad(wg.grad(lambda x: np.real(np.clip(x, 0.5, 2 + 1j)) * x))
    assert twice(1.0) == 2.0 and twice(3.0) == 0.0


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply])
def test_at_with_more_axes_of_length_one_than_the_place(ufunc):
    y = np.arange(1.0, 7.0).reshape(2, 3)
    column, v = (slice(None), 0), np.array([[5.0, 7.0]])  # NumPy takes this one itself
    ours, plain = wg.tensor(y), y.copy()
    ufunc.at(ours, column, v)
    ufunc.at(plain, column, v)
    assert np.array_equal(ours.numpy(), plain)
    for index, v in [
        (-1, [[[2.0]]]),
        (-1, [[2.0, 3.0, 4.0]]),
        ([0, 1], [[[3.0]]]),
    ]:
        ours, plain = wg.tensor(y), y.copy()
        ufunc.at(ours, index, v)
        plain[index] = ufunc(plain[index], v)
        assert np.array_equal(ours.numpy(), plain)
    with pytest.raises(ValueError):
        ufunc.at(wg.tensor(y), -1, np.ones((2, 3)))


def test_at_with_more_axes_of_length_one_has_a_derivative():
    def total(v):
        y = wg.tensor(np.ones((2, 3)))
        np.add.at(y, -1, v)
        return np.sum(y * [1.0, 2.0, 3.0])

    assert wg.grad(total)(np.ones((1, 3))).tolist() == [[1, 2, 3]]


# ---- numbers out -------------------------------------------------------------------------------

TO_WHOLE = [math.floor, math.ceil, math.trunc]


@pytest.mark.parametrize("f", TO_WHOLE)
def test_floor_ceil_and_trunc_of_pythons_math(f):
    for value in (2.5, -2.5, 3, True, 1e300, np.float32(2.7), np.longdouble(-0.5), np.int8(3)):
        whole = f(wg.tensor(value))
        assert whole == f(float(value)) and type(whole) is int
    assert wg.grad(lambda x: x * f(x))(2.5) == f(2.5)
    assert wg.grad(lambda x: x[f(x[0])] ** 2)(np.array([1.0, 3.0, 5.0])).tolist() == [0, 6, 0]
    with pytest.raises(ValueError, match="NaN"):
        f(wg.tensor(np.nan))
    for refused in (wg.tensor([1.5]), wg.tensor(1.5j)):
        with pytest.raises(TypeError, match=r"np\." + f.__name__):
            f(refused)


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex128])
def test_assignment_of_a_recorded_number_to_an_element_of_a_plain_array(dtype):
    def f(x):
        c = np.zeros(3, dtype)
        c[0] = x[0]
        return x[0]

    if np.dtype(dtype).kind == "i":  # truncated, a step: conventions 13.4
        assert wg.grad(f)(np.ones(3)).tolist() == [1.0, 0.0, 0.0]
        return
    # Of a float array NumPy puts an error of its own before ours, which it names as the cause.
    with pytest.raises(wg.errors.ConversionError) as caught:
        wg.grad(f)(np.ones(3))
    assert "np.zeros(n, like=x)" in str(caught.value) and __file__ in str(caught.value)
    with pytest.raises(wg.errors.TraceError, match=r"np\.zeros_like"):
        wg.trace(f)(np.ones(3))


@pytest.mark.parametrize(
    "time", [np.timedelta64(3, "s"), np.datetime64("2020-01-01"), np.array([3], "m8[s]")]
)
def test_grad_of_a_time_has_a_remedy_of_its_own(time):
    with pytest.raises(wg.errors.NotScalarError, match=r"np\.timedelta64\(1, 's'\)"):
        wg.grad(lambda x: time)(1.0)


# ---- names -------------------------------------------------------------------------------------


def test_every_module_of_wengert_numpy_is_collected():
    found = set()
    for info in pkgutil.iter_modules(wnp.__path__):
        module = importlib.import_module(f"wengert.numpy.{info.name}")
        if info.name not in wnp.SUBMODULES and hasattr(module, "__all__"):
            found.add(info.name)
            for name in module.__all__:
                assert vars(wnp)[name] is getattr(module, name)
                assert name in wnp.__all__
    assert found == set(wnp.MODULES.split())


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [1, 2, 5])
def test_geomspace_between_complex_tensors(num, endpoint):
    a, b = 1 + 1j, -2 + 0.5j
    got = np.geomspace(wg.tensor(a), wg.tensor(b), num, endpoint=endpoint)
    np.testing.assert_allclose(got.numpy(), np.geomspace(a, b, num, endpoint=endpoint), rtol=1e-13)
    check_grads(
        lambda a, b: np.geomspace(a, b, num, endpoint=endpoint), (np.array([a, 2j]), np.array([b]))
    )
