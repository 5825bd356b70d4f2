"""Names that programs for HIPS autograd import, and what autograd's own tests require of them."""

import numpy as onp
import pytest

import wengert as wg
import wengert.compat.autograd.numpy as np
from wengert.compat import autograd
from wengert.compat.autograd import builtins, core, grad, jacobian, make_vjp
from wengert.compat.autograd.builtins import DictBox, ListBox, SequenceBox, TupleBox
from wengert.compat.autograd.extend import defjvp, defvjp, primitive
from wengert.compat.autograd.misc import const_graph
from wengert.compat.autograd.numpy.numpy_vjps import (
    balanced_eq,
    match_complex,
    metadata,
    repeat_to_match_shape,
    replace_zero,
    unbroadcast,
    unbroadcast_f,
)
from wengert.compat.autograd.test_util import check_grads, scalar_close
from wengert.compat.autograd.util import func, quick_grad_check, subval, subvals
from wengert.errors import ArgumentError, CheckError

X = onp.array([0.5, -1.0, 2.0])


def test_containers_with_tensors():
    seen = {}

    def f(p):
        seen["dict"] = isinstance(p, DictBox), isinstance(p, SequenceBox)
        seen["list"] = isinstance(p["l"], ListBox), isinstance(p["l"], TupleBox)
        seen["tuple"] = isinstance(p["t"], TupleBox), isinstance(p["t"], SequenceBox)
        return p["l"][0] * p["t"][1]

    assert grad(f)({"l": [2.0], "t": (1.0, 3.0)}) == {"l": [3.0], "t": (0.0, 2.0)}
    assert seen == {"dict": (True, False), "list": (True, False), "tuple": (True, True)}
    assert not isinstance({"a": 1.0}, DictBox) and not isinstance(X, builtins.ListBox)


def test_core_takes_functions_of_one_argument():
    vjp, value = core.make_vjp(np.sin, 0.5)
    assert value == onp.sin(0.5) and vjp(2.0) == 2.0 * onp.cos(0.5)
    value, tangent = core.make_jvp(np.sin, 0.5)(2.0)
    assert tangent == 2.0 * onp.cos(0.5)
    assert core.vspace(X).size == 3


def test_tables_of_rules():
    @primitive
    def twice(x):
        return 2.0 * x

    assert twice not in core.primitive_vjps and np.sin not in core.primitive_vjps
    defvjp(twice, lambda ans, x: lambda g: 2.0 * g)
    defjvp(twice, lambda g, ans, x: 2.0 * g)
    assert twice in list(core.primitive_vjps) and len(core.primitive_jvps) >= 1
    rule = core.primitive_vjps.pop(twice)
    del core.primitive_jvps[twice]
    with pytest.raises(NotImplementedError, match="defvjp"):
        grad(twice)(1.0)
    core.primitive_vjps[twice] = rule
    assert grad(twice)(1.0) == 2.0
    with pytest.raises(KeyError):
        del core.primitive_jvps[twice]


def test_old_methods_of_primitives():
    @autograd.primitive
    def product(x, y, z):
        return x * y + 0.0 * z

    with pytest.warns(UserWarning, match="deprecated"):
        product.defgrad(lambda ans, x, y, z: lambda g: y * g)
        product.defvjp(lambda g, ans, vs, gvs, x, y, z: x * g, argnum=1)
        product.defvjp_is_zero([2])
    assert grad(product, (0, 1, 2))(2.0, 3.0, 4.0) == (3.0, 2.0, 0.0)


def test_helpers_of_rules():
    assert metadata(X) == ((3,), 1, onp.dtype(float), False) == np.metadata(X)
    ones = onp.ones((4, 2, 3))
    onp.testing.assert_array_equal(unbroadcast(ones, metadata(onp.ones((2, 1)))), [[12.0], [12.0]])
    onp.testing.assert_array_equal(unbroadcast(ones * 1j, metadata(1.0)), 0.0)
    assert unbroadcast(ones, metadata(onp.ones(4)), -1).tolist() == [6.0] * 4
    assert match_complex(1.0, 2.0 + 1.0j) == 2.0 and type(match_complex(1j, 2.0)) is complex
    assert match_complex(1.0, 2.0) == 2.0
    assert balanced_eq(X, X, 0.5).tolist() == [0.5, 1.0, 1.0]
    assert replace_zero(onp.array([0.0, 2.0]), 1.0).tolist() == [1.0, 2.0]
    g, count = repeat_to_match_shape(onp.array([1.0, 2.0]), (2, 3), float, 1, False)
    assert g.tolist() == [[1.0] * 3, [2.0] * 3] and count == 3
    assert repeat_to_match_shape(1.0, (), float, None, False) == (1.0, 1)
    assert repeat_to_match_shape(1.0, (2, 3), float, None, False)[1] == 6
    assert subvals((1, 2, 3), [(0, 5)]) == (5, 2, 3) == subval([1, 2, 3], 0, 5)
    assert func(len) is len and scalar_close(1.0, 1.0 + 1e-7) and not scalar_close(1.0, 1.1)
    quick_grad_check(lambda x, y, z=0.0: x**2 * y + z, 1.5, (2.0,), {"z": 1.0}, verbose=False)


def test_rules_with_sums_over_broadcast_axes():
    @primitive
    def product(x, y):
        return x * y

    defvjp(
        product,
        lambda ans, x, y: unbroadcast_f(x, lambda g: g * y),
        lambda ans, x, y: unbroadcast_f(y, lambda g: g * x),
    )
    check_grads(product, (0, 1))(onp.ones((2, 1)), X)


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", [float, complex])
def test_eigenvalues_of_the_triangle_that_is_read(uplo, dtype):
    rng = onp.random.default_rng(0)
    a = rng.normal(size=(2, 4, 4))
    if dtype is complex:
        a = a + 1j * rng.normal(size=a.shape)
    check_grads(lambda a: np.linalg.eigh(a, uplo)[0])(a)
    check_grads(lambda a: np.linalg.eigvalsh(a, uplo))(a)
    check_grads(lambda a: np.abs(np.linalg.eigh(a, uplo)[1]))(a)
    g = grad(lambda a: np.sum(np.linalg.eigvalsh(a, uplo) ** 3))(a)
    unread = onp.triu(g, 1) if uplo == "L" else onp.tril(g, -1)
    assert not unread.any() and g.any()


def test_functions_that_autograd_changes():
    assert np.where(True, 1, 2) == 1 and type(np.where(True, 1, 2)) is int
    assert np.where([True, False], [1, 2], [3, 4]) == [1, 4]
    assert np.where(condition=[True, False], x=X[:2], y=X[1:]).tolist() == [0.5, 2.0]
    assert np.where([False, True])[0].tolist() == [1]
    assert grad(lambda x: np.where(True, x, 2.0))(1.0) == 1.0
    assert jacobian(lambda x: np.where([True, False], [x, x], [0.0, 1.0]))(1.0).tolist() == [1, 0]
    with pytest.raises(ArgumentError, match="both x and y"):
        np.where(True, 1)
    square = np.make_diagonal(onp.ones((2, 3)), axis1=-1, axis2=-2)
    onp.testing.assert_array_equal(square, [onp.eye(3)] * 2)
    check_grads(lambda d: np.make_diagonal(d, axis1=-1, axis2=-2))(X)
    with pytest.raises(ArgumentError, match="make_diagonal"):
        np.make_diagonal(X)
    onp.testing.assert_array_equal(np.linalg.T(square), square)
    onp.testing.assert_array_equal(np.linalg._dot(square, square), square)


def test_integer_types_accept_tensors():
    assert grad(lambda x: np.sum(x * np.int64(x)))(X).tolist() == [0.0, -1.0, 2.0]
    assert onp.dtype(np.int64) == onp.int64 and type(np.int32(2.5)) is onp.int32
    assert isinstance(onp.int64(1), np.int64) and onp.issubdtype(onp.int16, np.integer)
    assert onp.zeros(2, np.int8).dtype == onp.int8 and not isinstance(1.0, np.int64)
    traced = wg.trace(lambda x: x * np.int64(x))(X)
    assert traced(X).tolist() == [0.0, 1.0, 4.0]


def test_star_imports_have_all_names():
    names = {}
    exec("from wengert.compat.autograd.numpy import *", names)
    assert {"sin", "where", "linalg", "int64", "einsum"} <= set(names)


def test_gradients_of_booleans_are_refused():
    for f in (lambda x: np.allclose(x, x), lambda x: np.argmax(x), lambda x: 3):
        with pytest.raises(TypeError, match="not a real number"):
            grad(f)(X)
    with pytest.raises(TypeError):
        grad(lambda x: x * (1.0 + 0.2j))(1.0)


def test_const_graph():
    calls = []

    @primitive
    def noted(x):
        calls.append("noted")
        return x * 2.0

    defvjp(noted, lambda ans, x: lambda g: g * 2.0)

    def f(a, b, c=0.0):
        calls.append("f")
        return {"y": np.sin(a) * noted(b[0]) + c, "constant": 3.0}

    g = const_graph(f, 1.0, c=1.0)
    assert not calls
    for x in (2.0, 5.0):
        got = g([x])
        assert got["y"] == onp.sin(1.0) * 2.0 * x + 1.0 and got["constant"] == 3.0
        assert type(got["y"]) is onp.float64
    assert calls == ["f", "noted", "noted"]
    assert grad(lambda x: g([x])["y"])(2.0) == 2.0 * onp.sin(1.0)
    assert grad(lambda x: const_graph(f, 1.0)([x])["y"])(2.0) == 2.0 * onp.sin(1.0)
    assert make_vjp(lambda x: g([x])["y"])(2.0)[0](3.0) == 6.0 * onp.sin(1.0)


def test_check_grads_finds_a_wrong_rule_of_a_function_in_a_rule():
    @primitive
    def off(x):
        return 1.0 * x

    defvjp(off, lambda ans, x: lambda g: 1.001 * g)

    @primitive
    def twice(x):
        return 2.0 * x

    defvjp(twice, lambda ans, x: lambda g: 2.0 * off(g))
    check_grads(twice, modes=["rev"], order=1)(1.0)
    with pytest.raises(CheckError, match=r"\(VJP\) check of vjp_twice failed"):
        check_grads(twice, modes=["rev"])(1.0)
    with pytest.raises(CheckError, match="the vjp of twice"):
        wg.check_grads(twice, (1.0,), modes=["rev"])
    # such a rule gives a wrong second derivative
    assert grad(grad(lambda x: twice(x) ** 2))(1.0) == pytest.approx(8.008)
    with pytest.raises(CheckError, match=r"\(JVP\) check of twice failed"):
        defjvp(twice, lambda g, ans, x: 2.1 * g)
        check_grads(twice, modes=["fwd"])(1.0)


def test_check_grads_evaluates_a_smooth_function_twice_for_each_check():
    count = []

    def f(x):
        count.append(0)
        return np.sum(np.sin(x) * x)

    check_grads(f, modes=["rev"], order=1)(X)
    assert len(count) <= 5  # the value, the recording, and two for the difference


def test_shapes_of_lists_of_tensors():
    seen = []

    def f(x):
        seen.append((np.shape([x, [x[0], 1.0]][:1]), np.ndim([x, x]), np.shape(x), np.ndim(2.0)))
        return np.sum(np.split([x[0], x[1] ** 2], 2)[1])

    assert grad(f)(X).tolist() == [0.0, -2.0, 0.0]
    assert seen == [((1, 3), 2, (3,), 0)]


def test_matrices_of_functions_whose_rules_have_reverse_mode_only():
    @primitive
    def cube(x, n):
        return x**n

    # the rule leaves out its boxes, as programs for autograd do that call SciPy in it
    def vjp(ans, x, n):
        slope = onp.asarray(3.0 * autograd.tracer.getval(x) ** 2)
        return lambda g: onp.asarray(autograd.tracer.getval(g)) * slope

    defvjp(cube, vjp, None)
    f = lambda x: np.sum(cube(x, 3) * x[0])  # noqa: E731
    y = onp.array([2.0, 3.0])
    onp.testing.assert_allclose(jacobian(lambda x: cube(x, 3)[:1])(y), [[12.0, 0.0]])
    # so second derivatives lack what the rule leaves out: the values are those of autograd
    onp.testing.assert_allclose(autograd.hessian(f)(y), [[12.0, 27.0], [0.0, 0.0]])
    product = autograd.hessian_vector_product(f)(y, onp.array([1.0, 0.0]))
    onp.testing.assert_allclose(product, [12.0, 27.0])


def test_derivatives_with_respect_to_arrays_of_integers():
    whole = onp.array([1, 2, 3])
    assert autograd.elementwise_grad(np.square)(whole).tolist() == [2.0, 4.0, 6.0]
    assert grad(lambda p: np.sum(p["n"] ** 2 * p["x"]))({"n": whole, "x": X})["n"].tolist() == [
        1.0,
        -4.0,
        12.0,
    ]
    assert jacobian(lambda x: 0.5 * x)(whole).tolist() == (0.5 * onp.eye(3)).tolist()
    with pytest.raises(TypeError):  # as in autograd
        grad(np.sin)(3)


def test_views_of_dicts_are_joined():
    def f(p):
        total = np.sum(np.stack(p.values()) ** 2) + np.sum(np.concatenate(p[k] for k in "ab"))
        return total + np.sum(np.array(p.values())) + np.sum(np.vstack(map(np.sin, p.values())))

    g = grad(f)({"a": X, "b": 2 * X})
    onp.testing.assert_allclose(g["b"], 4 * X + 2.0 + onp.cos(2 * X))


def test_arrays_made_in_a_function_can_be_assigned_to():
    def f(x):
        y = np.zeros(3)
        for i in range(3):
            y[i] = x[i] ** 2
        y += x
        return np.sum(y * x)

    def of_numpy(x):
        y = onp.zeros(3)
        y[1:] = x[:-1] ** 2
        return onp.sum(y)

    expected = 3 * X**2 + 2 * X
    onp.testing.assert_allclose(grad(f)(X), expected, rtol=1e-14)
    onp.testing.assert_allclose(wg.grad(f)(X), expected, rtol=1e-14)
    onp.testing.assert_allclose(wg.jit(grad(f))(X), expected, rtol=1e-14)
    onp.testing.assert_allclose(grad(of_numpy)(X), [1.0, -2.0, 0.0])


def test_docstrings_of_gradients():
    assert autograd.grad.__doc__.lstrip().startswith("Returns a function which")
    assert grad(onp.sin, 1).__name__ == "grad_of_sin_wrt_argnum_1"
    assert grad(onp.sin, 1).__doc__.startswith("    grad of function sin with")


@pytest.fixture
def strict():
    autograd.strict.enable()
    yield autograd.strict
    autograd.strict.disable()


def test_strict_mode_refuses_assignments_to_elements(strict):
    def stored(x):
        y = np.zeros(3)
        y[0] = x[0]
        return np.sum(y)

    def written(x):
        y = 2.0 * x
        y[0] = 1.0
        return np.sum(y)

    def plain(x):
        y = onp.zeros(3)
        y[0] = 2.0
        return np.sum(x * y)

    for f in (stored, written):
        with pytest.raises(TypeError, match="without --strict"):
            grad(f)(X)
    assert grad(plain)(X).tolist() == [2.0, 0.0, 0.0]
    assert stored(X) == 0.5  # not differentiated
    strict.disable()
    assert grad(stored)(X).tolist() == [1.0, 0.0, 0.0] and grad(written)(X).tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: np.fft.rfft(x), 3),
        (lambda x: np.fft.rfft(x, 5), 4),
        (lambda x: np.fft.irfft(x, n=5), 4),
        (lambda x: np.fft.rfft2(x), (4, 3)),
        (lambda x: np.fft.rfftn(x, axes=(1, 0)), (3, 4)),
        (lambda x: np.fft.rfftn(x, (4, 5), (0, 1)), (4, 4)),
        (lambda x: np.fft.irfftn(x, (4, 5), (0, 1)), (4, 4)),
    ],
)
def test_strict_mode_refuses_real_transforms_of_odd_lengths(f, shape, strict):
    x = onp.cos(onp.arange(onp.prod(shape), dtype=float)).reshape(shape)
    energy = lambda x: np.sum(np.abs(f(x)) ** 2)  # noqa: E731
    with pytest.raises(NotImplementedError, match="without --strict"):
        grad(energy)(x)
    strict.disable()
    check_grads(energy)(x)


def test_strict_mode_allows_even_lengths_and_has_integers_of_its_own(strict):
    for f in (lambda x: np.fft.rfft(x), lambda x: np.fft.irfft(x), lambda x: np.fft.rfft(x, 2)):
        assert grad(lambda x, f=f: np.sum(np.abs(f(x)) ** 2))(onp.ones(4)).shape == (4,)
    assert not isinstance(onp.int64(3), np.int64) and not isinstance(onp.int64(3), np.integer)
    strict.disable()
    assert isinstance(onp.int64(3), np.int64) and isinstance(onp.int64(3), np.integer)
