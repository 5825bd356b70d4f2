"""C callbacks of vectors: samplers, solvers and filters, without Python, and what is refused."""

import ctypes
import gc
import shutil
import subprocess
import threading

import numpy as np
import pytest
from scipy import LowLevelCallable, ndimage

import wengert as wg
from wengert.errors import ArgumentError

DOUBLES = ctypes.POINTER(ctypes.c_double)
OBSERVED = np.array([0.5, -1.0, 2.0])


def at(array):
    return array.ctypes.data_as(DOUBLES)


def density(x, scale, center):
    return -0.5 * np.sum(((x - center) / scale) ** 2) - x.size * np.log(scale)


def chain(x):
    return -np.sum((x[1:] - np.sin(x[:-1])) ** 2) - np.sum(x**4)


class Logp:
    """A log-density, called as samplers do."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __call__(self, x, data=None, n=None):
        gradient, value = np.full(len(x), np.nan), np.full(1, np.nan)
        data = None if data is None else data.ctypes.data
        length = len(x) if n is None else n
        code = self.pointer.function(length, at(x), at(gradient), at(value), data)
        return code, value[0], gradient


def test_density_and_gradient_with_data():
    both = wg.jit(wg.value_and_grad(density))
    pointer = both.address(wg.spec(3), 1.0, wg.spec(3), signature="logp")
    x, data = np.array([1.0, 2.0, -1.0]), np.array([2.0, *OBSERVED])
    code, value, gradient = Logp(pointer)(x, data)
    wanted = wg.value_and_grad(density)(x, 2.0, OBSERVED)
    assert code == 0
    np.testing.assert_allclose(value, wanted[0], rtol=1e-14)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-14)


def test_one_program_for_all_sizes():
    logp = Logp(wg.jit(wg.value_and_grad(chain)).address(wg.spec("n"), signature="logp"))
    for n in (2, 3, 17):
        x = np.linspace(-1.0, 1.0, n)
        code, value, gradient = logp(x)
        assert code == 0
        np.testing.assert_allclose(value, chain(x), rtol=1e-13)
        np.testing.assert_allclose(gradient, wg.grad(chain)(x), rtol=1e-12, atol=1e-14)


def test_captured_arrays_are_constants():
    """An input for each captured array was read behind the caller's addresses."""
    center = OBSERVED.copy()
    f = wg.jit(wg.value_and_grad(lambda x: density(x, 1.0, center)))
    logp = Logp(f.address(wg.spec(3), signature="logp"))
    arrays = f.address(wg.spec(3), signature="arrays")
    x = np.ones(3)
    wanted = wg.value_and_grad(density)(x, 1.0, OBSERVED)
    center[:] = 7.0  # copied when the function was made
    code, value, gradient = logp(x)
    assert code == 0
    np.testing.assert_allclose(value, wanted[0], rtol=1e-14)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-14)
    value, gradient = np.empty(()), np.empty(3)
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * 2)(value.ctypes.data, gradient.ctypes.data)
    assert arrays.function(inputs, outputs, None) == 0
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-14)


def test_arguments_that_cannot_be():
    data = np.array([1.0, *OBSERVED])
    both = wg.jit(wg.value_and_grad(density))
    pointer = both.address(wg.spec(3), 1.0, wg.spec(3), signature="logp")
    logp, x = Logp(pointer), np.ones(4)
    assert logp(x, data, n=4)[0] == logp(x, data, n=2)[0] == logp(x, data, n=0)[0] == -1
    value, gradient, f = np.empty(1), np.empty(3), pointer.function
    place = data.ctypes.data
    assert f(3, at(x), at(gradient), at(value), place) == 0
    assert f(3, None, at(gradient), at(value), place) == -1
    assert f(3, at(x), None, at(value), place) == -1
    assert f(3, at(x), at(gradient), None, place) == -1
    assert f(3, at(x), at(gradient), at(value), None) == -1
    assert f(3, at(x), at(gradient), at(value), place + 1) == -1
    assert f(3, at(x), at(x[1:]), at(value), place) == -1  # an output over the input
    assert f(3, at(x), at(gradient), at(gradient[2:]), place) == -1
    np.testing.assert_array_equal(x, 1.0)


def test_results_that_are_not_finite_are_recoverable():
    logp = Logp(wg.jit(wg.value_and_grad(lambda x: np.sum(np.log(x)))).address(
        wg.spec("n"), signature="logp"))  # fmt: skip
    assert logp(np.array([1.0, 2.0]))[0] == 0
    assert logp(np.array([1.0, -2.0]))[0] == 1
    assert logp(np.array([1.0, 0.0]))[0] == 1
    solve = wg.jit(wg.value_and_grad(lambda x: np.sum(np.linalg.inv(np.outer(x, x)))))
    assert Logp(solve.address(wg.spec(3), signature="logp"))(np.ones(3))[0] == 1


def test_an_error_in_python_is_not_recoverable():
    @wg.extend.primitive
    def fails(x):
        if np.any(x > 5.0):
            raise ValueError("too large")
        return x * 1.0

    f = wg.jit(lambda t, x: fails(x) + t)
    pointer = f.address(0.0, wg.spec(2), signature="rhs")
    out = np.empty(2)
    assert pointer.function(0.0, at(np.ones(2)), at(out), None) == 0
    assert pointer.function(0.0, at(np.full(2, 9.0)), at(out), None) == -1


def test_hessian_vector_product():
    def product(x, v):
        return wg.hvp(chain, (x,), (v,))

    pointer = wg.jit(product).address(wg.spec("n"), wg.spec("n"), signature="hvp")
    x, v, out = np.linspace(0.0, 1.0, 5), np.arange(5.0), np.empty(5)
    assert pointer.function(5, at(x), at(v), at(out), None) == 0
    np.testing.assert_allclose(out, wg.hessian(chain)(x) @ v, rtol=1e-12)


def test_expanded_variables():
    f = wg.jit(lambda x: np.concatenate([x, np.exp(x)]))
    pointer = f.address(wg.spec("n"), signature="expand")
    x, out = np.array([0.0, 1.0, np.nan]), np.empty(6)
    assert pointer.function(3, 6, at(x), at(out), None) == 0
    np.testing.assert_allclose(out, np.concatenate([x, np.exp(x)]))
    assert pointer.function(3, 5, at(x), at(out), None) == -1


def test_right_hand_side_of_an_ode():
    def lotka(t, u, rates):
        return np.stack([rates[0] * u[0] - u[0] * u[1], u[0] * u[1] - rates[1] * u[1] + t])

    pointer = wg.jit(lotka).address(0.0, wg.spec(2), wg.spec(2), signature="rhs")
    u, rates, out = np.array([2.0, 3.0]), np.array([1.5, 3.0]), np.empty(2)
    assert pointer.function(0.5, at(u), at(out), rates.ctypes.data) == 0
    np.testing.assert_allclose(out, lotka(0.5, u, rates))
    by_u = wg.jit(wg.jacobian(lotka, 1)).address(0.0, wg.spec(2), wg.spec(2), signature="rhs")
    matrix = np.empty((2, 2))
    assert by_u.function(0.5, at(u), at(matrix), rates.ctypes.data) == 0
    np.testing.assert_allclose(matrix, wg.jacobian(lotka, 1)(0.5, u, rates))


def test_filters_of_images():
    image = np.random.default_rng(0).normal(size=(12, 9))
    spread = wg.jit(lambda window, power: np.sum(np.abs(window - np.mean(window)) ** power))
    pointer = spread.address(wg.spec("n"), 1.0, signature="generic_filter")
    power = ctypes.c_double(1.5)
    memory = ctypes.cast(ctypes.pointer(power), ctypes.c_void_p)
    got = ndimage.generic_filter(image, LowLevelCallable(pointer.function, memory), size=3)
    wanted = ndimage.generic_filter(image, lambda w: np.sum(np.abs(w - np.mean(w)) ** 1.5), size=3)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_filters_of_lines():
    image = np.random.default_rng(1).normal(size=(5, 8))
    f = wg.jit(lambda line: line[2:] - 2.0 * line[1:-1] + line[:-2])
    pointer = f.address(wg.spec("n+2"), signature="generic_filter1d")
    got = ndimage.generic_filter1d(image, LowLevelCallable(pointer.function), 3)
    wanted = ndimage.correlate1d(image, [1.0, -2.0, 1.0])
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_geometric_transform():
    image = np.random.default_rng(2).normal(size=(7, 6))
    f = wg.jit(lambda place: 0.9 * place + np.array([0.5, 0.25]))
    pointer = f.address(wg.spec(2, "int64"), signature="geometric_transform")
    got = ndimage.geometric_transform(image, LowLevelCallable(pointer.function))
    wanted = ndimage.geometric_transform(image, lambda p: (0.9 * p[0] + 0.5, 0.9 * p[1] + 0.25))
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


SUNDIALS = """
#include <stdint.h>
typedef struct { double *data; int64_t length; } *N_Vector;
typedef struct { double *data; int64_t rows, columns; } *SUNMatrix;
double *N_VGetArrayPointer(N_Vector v) { return v->data; }
int64_t N_VGetLength(N_Vector v) { return v->length; }
double *SUNDenseMatrix_Data(SUNMatrix a) { return a->data; }
int64_t SUNDenseMatrix_Rows(SUNMatrix a) { return a->rows; }
int64_t SUNDenseMatrix_Columns(SUNMatrix a) { return a->columns; }
"""


class Vector(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("rows", ctypes.c_int64), ("columns", ctypes.c_int64))


def opaque(array):
    return ctypes.byref(Vector(array.ctypes.data, *array.shape, *[0] * (2 - array.ndim)))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_callbacks_of_sundials(tmp_path):
    """With functions of its declarations: the vectors themselves are opaque."""
    (tmp_path / "s.c").write_text(SUNDIALS)
    path = str(tmp_path / "s.so")
    subprocess.run(["gcc", "-shared", "-fPIC", str(tmp_path / "s.c"), "-o", path], check=True)
    library = ctypes.CDLL(path)

    def robertson(t, y, k):
        a = k[0] * y[0] - k[1] * y[1] * y[2]
        return np.stack([-a, a - k[2] * y[1] ** 2, k[2] * y[1] ** 2])

    specs = 0.0, wg.spec(3), wg.spec(3)
    y, k, out = np.array([0.9, 1e-5, 0.1]), np.array([0.04, 1e4, 3e7]), np.empty(3)
    rhs = wg.jit(robertson).address(*specs, signature="CVRhsFn", library=library)
    data = ctypes.c_void_p(k.ctypes.data)
    assert rhs.function(0.0, opaque(y), opaque(out), data) == 0
    np.testing.assert_allclose(out, robertson(0.0, y, k))
    assert rhs.function(0.0, opaque(y[:2]), opaque(out), data) == -1
    assert rhs.function(0.0, opaque(y), None, data) == -1
    assert rhs.function(0.0, opaque(np.full(3, np.inf)), opaque(out), data) == 1
    columns = wg.jit(lambda t, y, k: wg.jacobian(robertson, 1)(t, y, k).T)
    jac = columns.address(*specs, signature="CVLsJacFn", library=library)
    matrix, rest = np.empty((3, 3)), [None] * 3
    assert jac.function(0.0, opaque(y), None, opaque(matrix), data, *rest) == 0
    np.testing.assert_allclose(matrix.T, wg.jacobian(robertson, 1)(0.0, y, k))
    assert jac.function(0.0, opaque(y), None, opaque(matrix[:2]), data, *rest) == -1
    with pytest.raises(ArgumentError, match=r"library=ctypes\.CDLL"):
        wg.jit(robertson).address(*specs, signature="CVRhsFn")
    with pytest.raises(ArgumentError, match="no function N_VGetArrayPointer"):
        wg.jit(robertson).address(*specs, signature="CVRhsFn", library=ctypes.CDLL(None))


@pytest.mark.parametrize(
    ("f", "specs", "signature", "what"),
    [
        (chain, [wg.spec(3)], "logp", "1 input and 2 outputs"),
        (wg.value_and_grad(chain), [wg.spec(3, "float32")], "logp", "float64, not float32"),
        (lambda x: (x, x), [wg.spec(3)], "logp", r"output 1 has the shape float64\[\]"),
        (lambda t, x: x, [0.0, wg.spec("n")], "rhs", "do not tell the size n"),
        (lambda t, x: x + t, [wg.spec(2), wg.spec(2)], "rhs", "passes a number"),
        (lambda x, y: x + y[:3], [wg.spec(3), wg.spec("m+3")], "expand", "fixed shapes"),
        (lambda x: x, [wg.spec((3, 3))], "expand", "passes a vector"),
        (lambda x: x, [wg.spec(3)], "logpdf", "'logp', 'hvp'"),
    ],
)
def test_programs_that_a_form_cannot_call(f, specs, signature, what):
    with pytest.raises(ArgumentError, match=what):
        wg.jit(f).address(*specs, signature=signature)


def test_threads_and_lifetime():
    def function():
        return wg.jit(wg.value_and_grad(chain)).address(wg.spec("n"), signature="logp").function

    kept, failures = function(), []
    gc.collect()

    def run(seed):
        x = np.random.default_rng(seed).normal(size=50)
        wanted, value, gradient = wg.grad(chain)(x), np.empty(1), np.empty(50)
        for _ in range(200):
            code = kept(50, at(x), at(gradient), at(value), None)
            if code or not np.allclose(gradient, wanted, rtol=1e-12):
                failures.append(seed)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_cffi():
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    pointer = wg.jit(wg.value_and_grad(chain)).address(wg.spec("n"), signature="logp")
    function = ffi.cast(pointer.declaration, pointer.address)
    x, gradient, value = np.linspace(0.0, 1.0, 4), np.empty(4), np.empty(1)
    places = [ffi.cast("double *", a.ctypes.data) for a in (x, gradient, value)]
    assert function(4, *places, ffi.NULL) == 0
    np.testing.assert_allclose(gradient, wg.grad(chain)(x), rtol=1e-12)


def test_null_addresses_of_arrays():
    pointer = wg.jit(lambda x: x[2:]).address(wg.spec("n"), signature="arrays")
    x, out = np.arange(5.0), np.empty(3)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    sizes = (ctypes.c_int64 * 1)(5)
    assert pointer.function(inputs, outputs, sizes) == 0
    np.testing.assert_array_equal(out, x[2:])
    assert pointer.function(None, outputs, sizes) == 1
    assert pointer.function(inputs, outputs, None) == 1
    assert pointer.function(inputs, (ctypes.c_void_p * 1)(None), sizes) == 1
    for bad in (0, -3, 1):
        assert pointer.function(inputs, outputs, (ctypes.c_int64 * 1)(bad)) == 1
