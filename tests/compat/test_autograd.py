"""HIPS autograd's idioms, through `wengert.compat.autograd`; the numbers are closed forms.

Complex numbers follow autograd: the gradient of a real J by z is dJ/dRe z - i dJ/dIm z, and a
pullback multiplies by f'(z).
"""

import re

import numpy as onp
import pytest
import scipy.signal
import scipy.special
import scipy.stats
import wengert.compat.autograd.numpy.random as npr
import wengert.compat.autograd.scipy.stats.norm as norm  # noqa: F401 - it can be imported
from wengert.compat.autograd.scipy.special import gammaln

import wengert as wg
import wengert.compat.autograd.numpy as np
from wengert.compat import autograd
from wengert.compat.autograd import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
)
from wengert.compat.autograd import isinstance as ag_isinstance
from wengert.compat.autograd import type as ag_type
from wengert.compat.autograd.extend import (
    Box,
    def_linear,
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
    vspace,
)
from wengert.compat.autograd.misc import flatten
from wengert.compat.autograd.misc.fixed_points import fixed_point
from wengert.compat.autograd.misc.flatten import flatten_func
from wengert.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from wengert.compat.autograd.numpy.linalg import solve
from wengert.compat.autograd.numpy.numpy_boxes import ArrayBox
from wengert.compat.autograd.test_util import check_equivalent, check_grads, combo_check
from wengert.compat.autograd.tracer import getval, isbox
from wengert.errors import (
    CheckError,
    NotDifferentiableError,
    NotScalarError,
    RegistryError,
    StructureError,
)

X = onp.array([0.5, -1.0, 2.0])
Z = onp.array([1.0 + 2.0j, -0.5 + 0.3j])


# ---- operators ---------------------------------------------------------------------------------


def test_example_of_the_readme():
    def tanh(x):
        return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))

    f, x = tanh, 0.7
    t = onp.tanh(x)
    for want in (1 - t**2, -2 * t * (1 - t**2), (6 * t**2 - 2) * (1 - t**2)):
        f = elementwise_grad(f)
        assert float(f(x)) == pytest.approx(want, rel=1e-12)


def test_grad_with_respect_to_arguments_and_containers():
    def f(x, y, scale=1.0):
        return scale * x * y["a"] ** 2

    y = {"a": 3.0}
    assert grad(f)(2.0, y) == 9.0 and grad(f)(2.0, y, scale=2.0) == 18.0
    assert grad(f, 1)(2.0, y) == {"a": 12.0}
    assert grad(f, [0, 1])(2.0, y) == (9.0, {"a": 12.0})
    assert grad_named(f, "y")(2.0, y) == {"a": 12.0}
    value, both = value_and_grad(f, (0, 1))(2.0, y)
    assert value == 18.0 and both == (9.0, {"a": 12.0})
    assert grad(f).__name__ == "grad_of_f_wrt_argnum_0"


def test_multigrad_and_aux():
    def f(a, b, *more, c=4.0):
        return a * b + sum(m**2 for m in more) + c**2

    assert multigrad_dict(f)(2.0, 3.0, 5.0) == {"a": 3.0, "b": 2.0, "more": (10.0,), "c": 8.0}
    g, aux = grad_and_aux(lambda x: (np.sum(x**2), {"x": x}))(X)
    assert (g == 2 * X).all() and (aux["x"] == X).all() and type(aux["x"]) is onp.ndarray


def test_linear_maps_at_a_point():
    vjp, value = make_vjp(np.sin)(X)
    assert (value == onp.sin(X)).all()
    onp.testing.assert_allclose(vjp(X), X * onp.cos(X))
    value, tangent = make_jvp(np.sin)(X)(X)
    onp.testing.assert_allclose(tangent, X * onp.cos(X))
    onp.testing.assert_allclose(make_jvp_reversemode(np.sin)(X)(X), X * onp.cos(X))
    onp.testing.assert_allclose(deriv(np.sin)(X), onp.cos(X))
    vjp, value = make_vjp(lambda a, b: (a * b, {"s": a}), 1)(2.0, 3.0)
    assert vjp((5.0, {"s": 1.0})) == 10.0


def test_matrices_and_products():
    def f(x):
        return np.sum(x**3) * x[0]

    s = onp.sum(X**3)
    h = onp.diag(6 * X * X[0])
    h[0] += 3 * X**2
    h[:, 0] += 3 * X**2
    onp.testing.assert_allclose(hessian(f)(X), h)
    onp.testing.assert_allclose(hessian_vector_product(f)(X, X), h @ X)
    hvp, gradient = make_hvp(f)(X)
    onp.testing.assert_allclose(hvp(X), h @ X)
    onp.testing.assert_allclose(gradient, 3 * X**2 * X[0] + [s, 0, 0])
    onp.testing.assert_allclose(jacobian(lambda x: np.outer(x, x))(X)[0, 1], [X[1], X[0], 0.0])
    outer = tensor_jacobian_product(lambda x: np.outer(x, x))
    onp.testing.assert_allclose(outer(X, onp.eye(3)), 2 * X)
    assert outer(X, X).shape == (3, 3)  # fewer axes than the value: what remains is a Jacobian
    assert jacobian(np.sin)(0.3) == pytest.approx(onp.cos(0.3))


def test_gauss_newton():
    def model(x):
        return np.array([x[0] ** 2, x[0] * x[1], np.sin(x[2])])

    j = onp.array([[2 * X[0], 0, 0], [X[1], X[0], 0], [0, 0, onp.cos(X[2])]])
    onp.testing.assert_allclose(make_ggnvp(model)(X)(X), j.T @ j @ X)
    weights = onp.array([1.0, 2.0, 3.0])
    ggnvp = make_ggnvp(model, lambda y: np.sum(weights * y**2) / 2)
    onp.testing.assert_allclose(ggnvp(X)(X), j.T @ (weights * (j @ X)))


def test_checkpoint():
    def f(x):
        return np.sum(np.sin(x) ** 2)

    onp.testing.assert_allclose(grad(checkpoint(f))(X), onp.sin(2 * X))
    onp.testing.assert_allclose(hessian(checkpoint(f))(X), onp.diag(2 * onp.cos(2 * X)), atol=1e-15)


def test_errors():
    with pytest.raises(NotScalarError):
        grad(np.sin)(X)
    with pytest.raises(NotScalarError):
        grad(lambda z: z**2)(1.0j)
    with pytest.raises(TypeError):
        elementwise_grad(lambda z: z**2)(Z)
    with pytest.raises(TypeError):
        grad(np.sin)(3)
    with pytest.raises(TypeError):
        jacobian(lambda z: z**2)(Z)
    with pytest.raises(StructureError):
        make_vjp(np.sin)(0.5)[0](1.0 + 2.0j)


# ---- complex numbers ---------------------------------------------------------------------------

HOLOMORPHIC = [
    (np.sin, onp.cos),
    (np.exp, onp.exp),
    (lambda z: z**3, lambda z: 3 * z**2),
    (np.sqrt, lambda z: 0.5 / onp.sqrt(z)),
    (lambda z: 1 / z, lambda z: -1 / z**2),
]


@pytest.mark.parametrize("k", range(len(HOLOMORPHIC)))
def test_holomorphic_functions(k):
    f, slope = HOLOMORPHIC[k]
    g = onp.array([1.0 - 1.0j, 0.5j])
    onp.testing.assert_allclose(make_vjp(f)(Z)[0](g), g * slope(Z))
    onp.testing.assert_allclose(make_jvp(f)(Z)(g)[1], g * slope(Z))
    onp.testing.assert_allclose(holomorphic_grad(f)(Z[0]), slope(Z[0]))
    onp.testing.assert_allclose(grad(lambda z: np.sum(np.real(f(z))))(Z), slope(Z))
    onp.testing.assert_allclose(grad(lambda z: np.sum(np.imag(f(z))))(Z), -1j * slope(Z))


def test_nonholomorphic_functions():
    onp.testing.assert_allclose(grad(np.abs)(3.0 + 4.0j), 0.6 - 0.8j)
    onp.testing.assert_allclose(grad(lambda z: np.sum(np.abs(z) ** 2))(Z), 2 * Z.conj())
    onp.testing.assert_allclose(grad(np.angle)(3.0 + 4.0j), (-4 - 3j) / 25)
    onp.testing.assert_allclose(jacobian(lambda z: np.abs(z) ** 2)(Z), onp.diag(2 * Z.conj()))
    assert wg.grad(np.abs)(3.0 + 4.0j) == grad(np.abs)(3.0 + 4.0j).conj()
    with pytest.warns(UserWarning, match="not complex"):
        assert holomorphic_grad(np.square)(3.0) == 6.0


def test_real_argument_of_a_complex_function():
    f = lambda x: np.real(np.exp(1j * x))  # noqa: E731
    assert grad(f)(1.0) == pytest.approx(-onp.sin(1.0))
    assert grad(grad(f))(1.0) == pytest.approx(-onp.cos(1.0))


# ---- primitives --------------------------------------------------------------------------------


def rules_of_logsumexp():
    @primitive
    def logsumexp(x):
        assert type(x) is onp.ndarray
        top = onp.max(x)
        return top + onp.log(onp.sum(onp.exp(x - top)))

    def vjp(ans, x):
        shape = x.shape
        return lambda g: np.full(shape, g) * np.exp(x - np.full(shape, ans))

    return logsumexp, vjp


def test_primitive():
    logsumexp, vjp = rules_of_logsumexp()
    assert logsumexp.__name__ == "logsumexp"
    with pytest.raises(NotDifferentiableError, match="defvjp"):
        grad(logsumexp)(X)
    defvjp(logsumexp, vjp)
    p = scipy.special.softmax(X)
    onp.testing.assert_allclose(grad(logsumexp)(X), p)
    onp.testing.assert_allclose(hessian(logsumexp)(X), onp.diag(p) - onp.outer(p, p), atol=1e-15)
    onp.testing.assert_allclose(make_jvp(logsumexp)(X)(X)[1], p @ X)  # derived from the other mode
    check_grads(logsumexp, modes=["rev", "fwd"], order=2)(X)
    traced = wg.trace(wg.grad(logsumexp))(X)
    onp.testing.assert_allclose(traced(X), p)
    onp.testing.assert_allclose(wg.jit(wg.grad(logsumexp))(X), p)
    rows = wg.vmap(wg.grad(logsumexp))(onp.stack([X, 2 * X]))
    onp.testing.assert_allclose(rows[1], scipy.special.softmax(2 * X))


def test_rules_for_single_arguments():
    @primitive
    def f(x, y, n, scale=1.0):
        return scale * x**n * y

    defvjp(
        f,
        lambda ans, x, y, n, scale=1.0: lambda g: g * scale * n * x ** (n - 1) * y,
        lambda ans, x, y, n, scale=1.0: lambda g: g * scale * x**n,
        None,
    )
    assert grad(f, (0, 1))(2.0, 5.0, 3) == (60.0, 8.0)
    assert grad(f, 0)(2.0, 5.0, 3, scale=2.0) == 120.0
    assert grad(grad(f))(2.0, 5.0, 3) == 60.0
    assert grad(lambda x: f(x, x, 2.0))(3.0) == 27.0
    assert grad(f, 2)(2.0, 5.0, 3.0) == 0.0

    @primitive
    def only_second(x, y):
        return x * y

    defvjp(only_second, lambda ans, x, y: lambda g: g * x, argnums=(1,))
    assert grad(only_second, 1)(2.0, 3.0) == 2.0
    with pytest.raises(NotDifferentiableError, match="argument 0 is not defined"):
        grad(only_second, 0)(2.0, 3.0)


def test_rules_for_several_arguments():
    @primitive
    def product(*xs):
        return onp.prod(onp.array(xs))

    def one(argnum, ans, xs, kwargs):
        others = [x for i, x in enumerate(xs) if i != argnum]
        return lambda g: g * np.prod(np.array(others))

    defvjp_argnum(product, one)
    assert grad(product, (0, 2))(2.0, 3.0, 4.0) == (12.0, 6.0)

    def several(argnums, ans, xs, kwargs):
        return lambda g: tuple(one(i, ans, xs, kwargs)(g) for i in argnums)

    defvjp_argnums(product, several)
    assert grad(product, (0, 2))(2.0, 3.0, 4.0) == (12.0, 6.0)
    assert hessian(lambda x: product(x[0], x[1], x[2]))(X)[0, 1] == X[2]


def test_forward_rules():
    @primitive
    def f(x, y):
        return x**2 * y

    defjvp(f, lambda g, ans, x, y: 2 * g * x * y, "same")
    assert make_jvp(f)(2.0, 3.0)(1.0) == (12.0, 12.0)
    assert deriv(f, 1)(2.0, 3.0) == 4.0
    assert grad(f, (0, 1))(2.0, 3.0) == (12.0, 4.0)  # the transpose
    assert make_jvp(lambda t: f(t, t))(2.0)(1.0)[1] == 12.0

    @primitive
    def both(x, y):
        return x * y

    defjvp_argnums(
        both,
        lambda argnums, gs, ans, args, kw: sum(
            g * args[1 - i] for i, g in zip(argnums, gs, strict=True)
        ),
    )
    assert make_jvp(lambda t: both(t, 3.0 * t))(2.0)(1.0)[1] == 12.0

    @primitive
    def mean(x):
        return onp.mean(x)

    def_linear(mean)
    onp.testing.assert_allclose(grad(mean)(X), onp.full(3, 1 / 3))
    assert make_jvp(mean)(X)(X)[1] == pytest.approx(X.mean())


def test_complex_rules_follow_the_convention_of_autograd():
    @primitive
    def square(z):
        return z * z

    defvjp(square, lambda ans, z: lambda g: g * 2 * z)
    onp.testing.assert_allclose(make_vjp(square)(Z)[0](Z), 2 * Z**2)
    onp.testing.assert_allclose(holomorphic_grad(square)(Z[0]), 2 * Z[0])
    onp.testing.assert_allclose(grad(lambda z: np.sum(np.real(square(z))))(Z), 2 * Z)
    onp.testing.assert_allclose(make_jvp(square)(Z)(Z)[1], 2 * Z**2)
    onp.testing.assert_allclose(wg.grad(lambda z: np.sum(np.real(square(z))))(Z), 2 * Z.conj())


def test_primitives_of_containers():
    @primitive
    def swap(pair):
        return {"first": pair[1] * 2.0, "second": pair[0] * 3.0}

    defvjp(swap, lambda ans, pair: lambda g: (g["second"] * 3.0, g["first"] * 2.0))

    def f(x, y):
        out = swap((x, y))
        return out["first"] * out["second"]

    assert grad(f, (0, 1))(2.0, 5.0) == (30.0, 12.0)
    assert grad(lambda x: swap((x, 1.0))["second"])(2.0) == 3.0
    assert make_jvp(lambda x: f(x, x))(2.0)(1.0)[1] == 24.0


def test_functions_without_derivative():
    @notrace_primitive
    def pivot(x):
        assert type(x) is onp.ndarray
        return onp.argmax(onp.abs(x))

    assert (grad(lambda x: x[pivot(x)] ** 2)(X) == [0, 0, 4]).all()

    @primitive
    def step(x):
        return onp.floor(x)

    register_notrace(None, step)
    assert (grad(lambda x: np.sum(x * step(x)))(X) == onp.floor(X)).all()
    with pytest.raises(RegistryError, match="not a primitive"):
        defvjp(np.sin, None)


# ---- values ------------------------------------------------------------------------------------


def test_boxes_and_builtins():
    seen = {}

    def f(x):
        seen.update(
            box=isbox(x), array=ag_isinstance(x, onp.ndarray), kind=ag_type(x), value=getval(x)
        )
        assert isinstance(x, Box) and isinstance(x, ArrayBox) and isinstance(x, onp.ndarray)
        d = autograd.dict(a=x, b=autograd.list([x, 1.0]))
        return np.sum(d["a"] * d["b"][0] + autograd.tuple((x, x))[1])

    onp.testing.assert_allclose(grad(f)(X), 2 * X + 1)
    assert seen["box"] and seen["array"] and seen["kind"] is onp.ndarray
    assert type(seen["value"]) is onp.ndarray and not isbox(X)
    assert grad(lambda x: x if ag_isinstance(x, float) else 2 * x)(1.0) == 1.0
    assert (wg.trace(lambda x: 2 * x if ag_type(x) is onp.ndarray else x)(X)(X) == 2 * X).all()


def test_vector_spaces():
    space = vspace({"a": Z, "b": [1.0, X]})
    assert space.size == 8 and space.iscomplex and space == vspace(space.zeros())
    assert len(list(space.standard_basis())) == 8
    x = space.randn()
    assert space.inner_prod(x, x) == pytest.approx(
        onp.sum(onp.abs(x["a"]) ** 2) + x["b"][0] ** 2 + x["b"][1] @ x["b"][1]
    )
    total = space.add(x, space.scalar_mul(x, -1.0))
    assert not total["a"].any() and (space.covector(x)["a"] == x["a"].conj()).all()
    assert (vspace(Z).ones() == 1 + 1j).all() and vspace(X).shape == (3,)
    with pytest.raises(TypeError):
        vspace("text")


def test_flatten():
    value = [1.0, {"b": onp.ones((2, 2)), "a": (2.0, onp.float32(3.0))}]
    vector, unflatten = flatten(value)
    assert vector.tolist() == [1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    back = unflatten(2 * vector)
    assert (back[1]["b"] == 2).all() and back[1]["a"][1].dtype == onp.float32 and back[0] == 2
    assert flatten(())[0].shape == (0,)
    g = grad(lambda p: np.sum(flatten(p)[0] ** 2))(value)
    assert g[0] == 2.0 and (g[1]["b"] == 2).all() and g[1]["a"] == (4.0, 6.0)
    f, unflatten, start = flatten_func(lambda p: {"y": p["x"] ** 2}, {"x": X})
    assert (jacobian(f)(start) == onp.diag(2 * X)).all()
    assert (unflatten(start)["x"] == X).all()
    assert hessian(lambda v: np.sum(unflatten(v)["x"] ** 3))(start)[2, 2] == 12.0


@pytest.mark.sample(2)
@pytest.mark.parametrize("optimize", [sgd, rmsprop, adam])
def test_optimizers(optimize):
    seen = []
    start = {"w": npr.RandomState(0).randn(2, 2), "b": (1.0, onp.zeros(2))}

    def loss(p, i):
        return np.sum((p["w"] - 3.0) ** 2) + (p["b"][0] + 1.0) ** 2 + np.sum((p["b"][1] - 1) ** 2)

    def callback(p, i, g):
        seen.append((i, loss(p, i)))
        assert g["w"].shape == (2, 2)

    end = optimize(grad(loss), start, callback=callback, num_iters=300, step_size=0.05)
    assert [i for i, _ in seen] == list(range(300))
    assert loss(end, 0) < 1e-2 * seen[0][1]
    onp.testing.assert_allclose(end["w"], 3.0, atol=0.1)


def test_first_steps_of_optimizers():
    g = lambda x, i: 2.0 * x  # noqa: E731
    x = onp.array([1.0])
    assert sgd(g, x, num_iters=1)[0] == pytest.approx(1.0 - 0.1 * 0.1 * 2.0)
    assert rmsprop(g, x, num_iters=1)[0] == pytest.approx(1.0 - 0.1 * 2.0 / onp.sqrt(1.3), rel=1e-6)
    assert adam(g, x, num_iters=1)[0] == pytest.approx(1.0 - 0.001, rel=1e-6)


def test_fixed_point():
    def newton(a):
        return lambda x: 0.5 * (x + a / x)

    def root(a):
        return fixed_point(newton, a, 1.0, lambda x, y: np.abs(x - y), 1e-13)

    assert root(4.0) == pytest.approx(2.0)
    assert grad(root)(4.0) == pytest.approx(0.25, rel=1e-9)
    assert grad(grad(root))(4.0) == pytest.approx(-1 / 32, rel=1e-7)

    m = onp.array([[0.2, 0.1], [0.0, 0.3]])  # x = m x + a

    def linear(a):
        return lambda x: m @ x + a

    solved = jacobian(
        lambda a: fixed_point(linear, a, onp.zeros(2), lambda x, y: np.max(np.abs(x - y)), 1e-14)
    )(onp.ones(2))
    onp.testing.assert_allclose(solved, onp.linalg.inv(onp.eye(2) - m), rtol=1e-9)


def test_check_grads_detects_a_wrong_rule():
    @primitive
    def wrong(x):
        return x**2

    defvjp(wrong, lambda ans, x: lambda g: g * x)
    with pytest.raises(CheckError):
        check_grads(wrong, modes=["rev"], order=1)(3.0)
    combo_check(np.multiply, (0, 1))([2.0, X], [3.0, 2 * X])
    check_equivalent(X, X + 1e-9)
    with pytest.raises(AssertionError):
        check_equivalent(X, X + 1.0)


# ---- programs ----------------------------------------------------------------------------------


def test_namespaces():
    a = onp.array([[4.0, 1.0], [1.0, 3.0]])
    b = onp.array([1.0, 2.0])
    got = grad(lambda b: np.sum(solve(a, b)))(b)
    onp.testing.assert_allclose(got, onp.linalg.solve(a.T, onp.ones(2)))
    got = elementwise_grad(gammaln)(onp.array([0.5, 3.0]))
    onp.testing.assert_allclose(got, scipy.special.digamma([0.5, 3.0]), rtol=1e-12)
    spectrum = grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(X)
    onp.testing.assert_allclose(spectrum, 6 * X, rtol=1e-12)  # Parseval
    assert np.array([1.0, 2.0]).dtype == onp.float64 and np.pi == onp.pi
    assert (grad(lambda x: np.sum(np.array([x[0], x[1] * 2, 3.0])))(X) == [1, 2, 0]).all()


def test_network_with_parameters_in_containers():
    rng = npr.RandomState(1)
    params = [(rng.randn(m, n) * 0.5, rng.randn(n) * 0.1) for m, n in ((2, 8), (8, 1))]
    inputs = rng.randn(20, 2)
    targets = inputs[:, :1] * inputs[:, 1:]

    def predict(params, x):
        for w, b in params:
            out = np.dot(x, w) + b
            x = np.tanh(out)
        return out

    def objective(params, i):
        return np.mean((predict(params, inputs) - targets) ** 2)

    check_grads(lambda p: objective(p, 0), modes=["rev"], order=1)(params)
    end = adam(grad(objective), params, step_size=0.05, num_iters=150)
    assert objective(end, 0) < 0.2 * objective(params, 0)


def test_compiled_functions():
    f = wg.jit(grad(lambda x: np.sum(np.sin(x) ** 2)))
    onp.testing.assert_allclose(f(X), onp.sin(2 * X))
    onp.testing.assert_allclose(wg.vmap(grad(np.sin))(X), onp.cos(X))


@pytest.mark.parametrize("entry", [0, 7, 11])
@pytest.mark.parametrize("wrong", ["vjp", "jvp", "second"])
def test_check_grads_detects_one_wrong_entry(entry, wrong):
    x = onp.random.default_rng(0).normal(size=(3, 4))
    off = onp.zeros(12)
    off[entry] = 1e-4
    off = off.reshape(3, 4)

    @primitive
    def cube(x):
        return x**3

    def rule(amount):
        if wrong == "second":
            return lambda ans, x: lambda g: g * 3 * x**2 + off * (x - onp.array(getval(x)))
        return lambda ans, x: lambda g: g * (3 * x**2 + amount)

    defvjp(cube, rule(off if wrong == "vjp" else 0.0))
    defjvp(cube, lambda g, ans, x: g * (3 * x**2 + (off if wrong == "jvp" else 0.0)))
    index = re.escape(str(tuple(map(int, onp.unravel_index(entry, (3, 4))))))
    message = {"vjp": f"index {index}", "jvp": f"output element {entry}", "second": "the vjp of"}
    with pytest.raises(CheckError, match=message[wrong]):
        check_grads(cube)(x)


def test_cost_of_check_grads_is_independent_of_the_number_of_entries():
    calls = []

    def f(x):
        calls.append(0)
        return np.sum(np.sin(x)) * x

    counts = []
    for n in (2, 40):
        calls.clear()
        check_grads(f)(onp.linspace(0.1, 1.0, n))
        counts.append(len(calls))
    assert counts[1] <= 1.5 * counts[0] < 80  # entry by entry 430 and 2,900


def test_rvs_takes_no_key():
    for name in ("norm", "expon", "gamma", "t", "poisson", "chi2", "beta"):
        given = {
            "gamma": (2.0,),
            "t": (3.0,),
            "poisson": (4.0,),
            "chi2": (2.0,),
            "beta": (1.0, 2.0),
        }
        args = given.get(name, ())
        theirs, ours = getattr(scipy.stats, name), getattr(autograd.scipy.stats, name)
        found = ours.rvs(*args, size=3, random_state=0)
        assert onp.array_equal(found, theirs.rvs(*args, size=3, random_state=0))
        onp.random.seed(1)
        wanted = theirs.rvs(*args)
        onp.random.seed(1)
        assert ours.rvs(*args) == wanted
    assert autograd.scipy.stats.multivariate_normal.rvs(onp.zeros(2), size=3).shape == (3, 2)
    assert autograd.scipy.stats.dirichlet.rvs([1.0, 2.0]).shape == (1, 2)
    assert grad(autograd.scipy.stats.expon.logpdf)(1.0) == -1.0


# ---- convolution along chosen axes ---------------------------------------------------------------


def convolved(a, b, axes, dot_axes, mode):
    """autograd's definition by loops, with axes (others of a, others of b, convolved)."""
    k = len(axes[0])
    stay = [[i for i in range(x.ndim) if i not in c and i not in d]
            for x, c, d in zip((a, b), axes, dot_axes, strict=True)]  # fmt: skip
    x = a.transpose([*stay[0], *axes[0], *dot_axes[0]])
    y = b.transpose([*stay[1], *axes[1], *dot_axes[1]])
    n = x.shape[len(stay[0]) :][:k]
    m = y.shape[len(stay[1]) :][:k]
    out = onp.zeros(
        [
            *x.shape[: len(stay[0])],
            *y.shape[: len(stay[1])],
            *(i + j - 1 for i, j in zip(n, m, strict=True)),
        ]
    )
    for p in onp.ndindex(*x.shape[: len(stay[0])]):
        for q in onp.ndindex(*y.shape[: len(stay[1])]):
            for i in onp.ndindex(*n):
                for j in onp.ndindex(*m):
                    out[(*p, *q, *onp.add(i, j).tolist())] += onp.sum(x[p + i] * y[q + j])
    for axis, (i, j) in enumerate(zip(n, m, strict=True)):
        lengths = {"full": i + j - 1, "same": i, "valid": abs(i - j) + 1}
        begin = {"full": 0, "same": (j - 1) // 2, "valid": min(i, j) - 1}[mode]
        out = out.take(range(begin, begin + lengths[mode]), axis=out.ndim - k + axis)
    return out


CONVOLUTIONS = [
    ((4, 5, 3), (2, 3, 2), ([0], [0]), ([2], [1])),
    ((4, 5, 3), (2, 6, 5), ([0, 1], [0, 2]), ((), ())),
    ((3, 7), (4, 2), ([1], [1]), ((), ())),
    ((3, 2), (4, 5), ([1], [1]), ((), ())),
    ((2, 4, 5), (2, 3, 2, 3), ([1, 2], [1, 3]), ([0], [0])),
    ((5, 2), (2, 3), ((), ()), ([1], [0])),
]


@pytest.mark.sample(9)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("one", "two", "axes", "dot_axes"), CONVOLUTIONS)
def test_convolve_along_axes(one, two, axes, dot_axes, mode):
    from wengert.compat.autograd.scipy.signal import convolve

    a, b = onp.random.default_rng(1).normal(size=one), onp.random.default_rng(2).normal(size=two)
    want = convolved(a, b, axes, dot_axes, mode)
    f = lambda a, b: convolve(a, b, axes=axes, dot_axes=dot_axes, mode=mode)  # noqa: E731
    onp.testing.assert_allclose(f(a, b), want, atol=1e-13)
    # bilinear, so the derivatives are known
    for got in wg.vjp(f, a, b)[1](want):
        assert got.shape in (one, two)
    for k, x in enumerate((a, b)):
        bar = wg.vjp(f, a, b)[1](want)[k]
        onp.testing.assert_allclose(onp.sum(bar * x), onp.sum(want * want), rtol=1e-12)


def test_convolve_of_all_axes_and_its_errors():
    from wengert.compat.autograd.scipy import signal

    a, b = onp.arange(12.0).reshape(3, 4), onp.ones((2, 2))
    onp.testing.assert_allclose(signal.convolve(a, b), scipy.signal.convolve(a, b))
    assert signal.fftconvolve is wg.scipy.signal.fftconvolve
    with pytest.raises(ValueError, match="mode='half'"):
        signal.convolve(a, b, mode="half")
    with pytest.raises(ValueError, match="are repeated"):
        signal.convolve(a, b, axes=([0, -2], [0, 1]))
    with pytest.raises(ValueError, match="2 axes of A and 1 of B"):
        signal.convolve(a, b, axes=([0, 1], [0]))
    with pytest.raises(ValueError, match=r"lengths \(3,\) and \(2,\)"):
        signal.convolve(a, b, axes=([1], [1]), dot_axes=([0], [0]))
    with pytest.raises(ValueError, match="larger along all"):
        signal.convolve(a, onp.ones((4, 2)), axes=([0, 1], [0, 1]), dot_axes=[(), ()], mode="valid")
