"""grad, value_and_grad, vjp, jvp, linearize, jacobian, hessian, hvp: what they promise.

Values are compared with formulas worked out by hand, nesting with its known pitfalls (perturbation
confusion, captured variables), structure with nested containers.
"""

import dataclasses
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert.errors import (
    ArgumentError,
    NotDifferentiableError,
    NotScalarError,
    ShapeError,
    StructureError,
    UnconnectedError,
    UnconnectedWarning,
)
from wengert.testing import check_grads


def test_grad_of_plain_numpy_program():
    x = np.array([0.3, 1.2])
    got = wg.grad(lambda x: np.sum(np.sin(x) * x**2))(x)
    np.testing.assert_allclose(got, np.cos(x) * x**2 + 2 * x * np.sin(x), rtol=1e-15)
    assert type(got) is np.ndarray and got.flags.writeable


def test_value_is_exactly_that_of_the_function():
    def f(x):
        return np.sum(np.exp(x) / (1.0 + x**2))

    x = np.linspace(-1, 1, 7)
    value, _ = wg.value_and_grad(f)(x)
    assert value == f(x) and type(value) is type(f(x))


def test_nested_derivatives_of_any_order():
    f = lambda x: x**5  # noqa: E731
    for order, want in enumerate([32.0, 80.0, 160.0, 240.0, 240.0, 120.0, 0.0]):
        g = f
        for _ in range(order):
            g = wg.grad(g)
        assert float(g(2.0)) == want


def test_no_perturbation_confusion_over_a_captured_variable():
    inner = lambda x: x * wg.grad(lambda y: x * y)(2.0)  # noqa: E731
    assert float(wg.grad(inner)(3.0)) == 6.0
    assert float(wg.jvp(inner, (3.0,), (1.0,))[1]) == 6.0
    forward = lambda x: x * wg.jvp(lambda y: x * y, (2.0,), (1.0,))[1]  # noqa: E731
    assert float(wg.grad(forward)(3.0)) == 6.0
    assert float(wg.jvp(forward, (3.0,), (1.0,))[1]) == 6.0
    # d/dx (x d/dy (x + y)) = 1, the example of Siskind and Pearlmutter (2005)
    siskind = lambda x: x * wg.jvp(lambda y: x + y, (1.0,), (1.0,))[1]  # noqa: E731
    assert float(wg.jvp(siskind, (1.0,), (1.0,))[1]) == 1.0


def test_derivative_with_respect_to_a_variable_that_is_itself_a_function_of_an_outer_one():
    def f(x):
        return wg.grad(lambda y: y**3)(x * x)  # 3 x^4

    assert float(f(2.0)) == 48.0
    assert float(wg.grad(f)(2.0)) == 12 * 8.0


def test_argnums_argnames_and_containers_keep_their_structure():
    @dataclasses.dataclass
    class Model:
        w: np.ndarray
        b: float
        name: str

    def loss(model, data, scale=2.0):
        return np.sum((data["x"] * model.w + model.b) * scale)

    model = Model(np.array([1.0, 2.0]), 0.5, "linear")
    data = {"x": np.array([3.0, 4.0])}
    g_model, g_data = wg.grad(loss, argnums=(0, 1))(model, data)
    assert isinstance(g_model, Model) and g_model.name is None
    np.testing.assert_array_equal(g_model.w, [6.0, 8.0])
    assert float(g_model.b) == 4.0
    np.testing.assert_array_equal(g_data["x"], [2.0, 4.0])
    by_name = wg.grad(loss, argnames="scale")(model, data, scale=2.0)
    assert float(by_name) == 3.5 + 8.5
    assert float(wg.grad(loss, argnames=["scale"])(model, data, scale=2.0)[0]) == 3.5 + 8.5
    assert isinstance(wg.grad(loss, argnums=[0])(model, data), tuple)


def test_has_aux_returns_plain_values():
    def f(x):
        y = x * x
        return np.sum(y), {"y": y}

    g, aux = wg.grad(f, has_aux=True)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(g, [2.0, 4.0])
    assert type(aux["y"]) is np.ndarray
    (value, aux), g = wg.value_and_grad(f, has_aux=True)(np.array([1.0, 2.0]))
    assert value == 5.0


def test_unconnected_policies():
    f = lambda x, y: np.sum(x)  # noqa: E731
    args = (np.ones(2), np.ones(3))
    np.testing.assert_array_equal(wg.grad(f, argnums=1)(*args), np.zeros(3))
    with pytest.warns(UnconnectedWarning, match=r"does not depend on the argument at \[0\]"):
        wg.grad(f, argnums=1, unconnected="warn")(*args)
    with pytest.raises(UnconnectedError, match="does not depend"):
        wg.grad(f, argnums=1, unconnected="raise")(*args)
    with pytest.raises(ValueError, match="not one of"):
        wg.grad(f, unconnected="ignore")


def test_float32_in_float32_out():
    x = np.ones(3, np.float32)
    assert wg.grad(lambda x: np.sum(np.exp(x) * np.arange(3.0)))(x).dtype == np.float32
    y, y_dot = wg.jvp(lambda x: x * x, (x,), (x,))
    assert y.dtype == y_dot.dtype == np.float32
    both = wg.grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(x, np.ones(3))
    assert [b.dtype for b in both] == [np.float32, np.float64]


def test_complex_gradient_is_the_direction_of_steepest_ascent():
    z = np.array([1.0 + 2.0j, -0.5j])
    got = wg.grad(lambda z: np.sum(np.abs(z) ** 2))(z)
    np.testing.assert_allclose(got, 2 * z, rtol=1e-15)
    check_grads(lambda z: np.sum((z * z).real), (z,), order=2)


def test_vjp_pulls_back_any_number_of_times():
    y, pull = wg.vjp(lambda x, p: {"a": x * p, "b": np.sin(x)}, np.array([1.0, 2.0]), 3.0)
    np.testing.assert_array_equal(y["a"], [3.0, 6.0])
    for k in (1.0, 2.0):
        x_bar, p_bar = pull({"a": np.array([k, 0.0]), "b": np.zeros(2)})
        np.testing.assert_array_equal(x_bar, [3.0 * k, 0.0])
        assert float(p_bar) == k


def test_vjp_is_differentiable_in_its_cotangent_and_its_point():
    def f(x, t):
        return wg.vjp(np.sin, x)[1](t)[0]

    check_grads(f, (np.array([0.3, 0.5]), np.array([1.0, 2.0])), order=2)


def test_jvp_and_linearize():
    x, v = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    _, push = wg.linearize(lambda x: np.exp(x) * x, x)
    want = np.exp(x) * (1 + x) * v
    np.testing.assert_allclose(push(v), want, rtol=1e-15)
    np.testing.assert_allclose(push(2 * v), 2 * want, rtol=1e-15)
    np.testing.assert_allclose(wg.jvp(lambda x: np.exp(x) * x, (x,), (v,))[1], want, rtol=1e-15)


def test_jvp_through_a_user_function_with_containers():
    _, d = wg.jvp(lambda p: {"y": p[0] * p[1]}, ([2.0, 3.0],), ([1.0, 1.0],))
    assert float(d["y"]) == 5.0


def test_jacobian_in_all_modes():
    def f(x, y):
        return {"p": x * y, "q": np.sum(x)}

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for mode in ("auto", "fwd", "rev"):
        jac = wg.jacobian(f, argnums=(0, 1), mode=mode)(x, y)
        np.testing.assert_array_equal(jac["p"][0], np.diag(y))
        np.testing.assert_array_equal(jac["p"][1], np.diag(x))
        np.testing.assert_array_equal(jac["q"][0], np.ones(2))
        np.testing.assert_array_equal(jac["q"][1], np.zeros(2))


def test_jacobian_shapes_and_repeated_outputs():
    jac = wg.jacrev(lambda x: (x, x))(np.ones((2, 3)))
    assert jac[0].shape == (2, 3, 2, 3)
    np.testing.assert_array_equal(jac[0].reshape(6, 6), np.eye(6))
    np.testing.assert_array_equal(jac[1].reshape(6, 6), np.eye(6))
    assert wg.jacfwd(lambda x: x[:0])(np.ones(2)).shape == (0, 2)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_hessian_of_rosenbrock_and_its_products():
    x = np.array([-1.2, 1.0, 0.7])
    want = np.array(
        [
            [1200 * 1.44 - 400 * 1.0 + 2, -400 * -1.2, 0.0],
            [-400 * -1.2, 1200 * 1.0 - 400 * 0.7 + 202, -400.0],
            [0.0, -400.0, 200.0],
        ]
    )
    got = wg.hessian(rosenbrock)(x)
    np.testing.assert_allclose(got, want, rtol=1e-13)
    v = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(wg.hvp(rosenbrock, (x,), (v,)), want @ v, rtol=1e-13)


def test_third_derivatives_of_a_hessian():
    x = np.array([0.4, 1.1])
    third = wg.jacobian(wg.hessian(lambda x: x[0] ** 2 * x[1] ** 2))(x)
    assert third.shape == (2, 2, 2)
    np.testing.assert_allclose(third[0, 0], [0.0, 4 * x[1]])
    np.testing.assert_allclose(third[0, 1], [4 * x[1], 4 * x[0]])


def test_stop_gradient_of_containers_and_plain_values():
    assert wg.stop_gradient(3.0) == 3.0
    f = lambda x: x * wg.stop_gradient({"a": x})["a"]  # noqa: E731
    assert float(wg.grad(f)(3.0)) == 3.0


def test_tensors_in_tensors_out():
    x = wg.tensor([1.0, 2.0])
    value, g = wg.value_and_grad(lambda x: np.sum(x * x))(x)
    assert isinstance(value, wg.Tensor) and isinstance(g, wg.Tensor)
    assert not g.requires_grad


def test_a_captured_parameter_keeps_the_gradient_differentiable():
    w = wg.tensor(2.0, requires_grad=True)
    g = wg.grad(lambda x: w * x * x)(3.0)
    assert isinstance(g, wg.Tensor) and float(g.item()) == 12.0
    g.backward()
    assert float(w.grad.item()) == 6.0


@pytest.mark.parametrize("bad", [3, np.arange(3), True, np.array([True])])
def test_integers_and_booleans_have_no_derivative(bad):
    with pytest.raises(NotDifferentiableError, match="Cast it first"):
        wg.grad(lambda x: x * 1.0)(bad)


@pytest.mark.parametrize("bad", ["text", np.array(["a"]), np.array([object()]), object()])
def test_arguments_that_are_not_numbers(bad):
    with pytest.raises(NotDifferentiableError, match="only floating and complex"):
        wg.grad(lambda x: 1.0)(bad)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x, r"float64\[2\].*Sum the result"),
        (lambda x: (x[0], x[1]), "has_aux=True"),
        (lambda x: "text", "returned a str"),
        (lambda x: None, "returned a NoneType"),
        (lambda x: np.argmax(x), "integer has no derivative"),
        (lambda x: np.sum(x) * 1j, "real part"),
    ],
)
def test_outputs_that_are_not_one_real_number(f, words):
    with pytest.raises(NotScalarError, match=words) as error:
        wg.grad(f)(np.ones(2))
    assert "test_transforms.py" in str(error.value)


def test_errors_of_second_derivatives_name_the_transformation():
    x = np.ones(2)
    with pytest.raises(NotScalarError, match=r"^hessian of <lambda>: it returned float64\[2\]"):
        wg.hessian(lambda x: x**2)(x)
    with pytest.raises(NotScalarError, match=r"^hessian of <lambda>: it returned a NoneType"):
        wg.jit(wg.hessian(lambda x: None))(x)
    with pytest.raises(NotScalarError, match=r"^hvp of <lambda>"):
        wg.hvp(lambda x: x**2, (x,), (x,))


@pytest.mark.parametrize("given", [1.5, np.ones(2), (np.ones(2), 1.0), "x", {"a": 1.0}])
def test_arguments_in_place_of_argnums(given):
    for transform in (wg.grad, wg.value_and_grad, wg.hessian, wg.jacobian):
        with pytest.raises(
            ArgumentError, match=rf"{transform.__name__}\(sin\)\(x\) \(at .*test_tr"
        ):
            transform(np.sin, given)
    for numbers in (0, [0], (0,), np.int64(0), np.array([0]), range(1)):
        assert np.size(wg.grad(np.sin, numbers)(0.5)) == 1


def test_wrong_seeds_and_tangents():
    _, pull = wg.vjp(np.sin, np.ones(3))
    with pytest.raises(ShapeError, match=r"shape \(2,\).*\(3,\)"):
        pull(np.ones(2))
    with pytest.raises(StructureError):
        pull((np.ones(3), np.ones(3)))
    with pytest.raises(ShapeError):
        wg.jvp(np.sin, (np.ones(3),), (np.ones(2),))
    with pytest.raises(StructureError, match="tuples"):
        wg.jvp(np.sin, np.ones(3), np.ones(3))
    with pytest.raises(StructureError, match="argnums names argument 2"):
        wg.grad(np.sin, argnums=2)(1.0)
    with pytest.raises(StructureError, match="no argument named 'z'"):
        wg.grad(lambda x: x, argnames="z")(1.0)
    with pytest.raises(ValueError, match="not one of"):
        wg.jacobian(np.sin, mode="both")


def test_exceptions_inside_the_function_leave_no_state_behind():
    class Mine(Exception):
        pass

    def f(x):
        with wg.no_grad():
            raise Mine

    for error in (Mine, KeyboardInterrupt):

        def g(x, error=error):
            with wg.no_grad():
                raise error

        with pytest.raises(error):
            wg.grad(g)(1.0)
        assert wg.is_recording()
        assert float(wg.grad(lambda x: x * x)(3.0)) == 6.0


def test_linear_functions_return_fresh_arrays():
    x = np.ones(3)
    _, pull = wg.vjp(lambda x, y: x + y, x, x)
    t = np.ones(3)
    a, b = pull(t)
    a += 1.0
    np.testing.assert_array_equal(b, np.ones(3))
    np.testing.assert_array_equal(t, np.ones(3))


def test_a_python_number_promotes_nothing():
    a = np.ones(2, np.float32)

    def f(x):
        return np.sum(a * (2.0 * -x + 1.0))

    value, slope = wg.value_and_grad(f)(0.5)
    assert value.dtype == f(0.5).dtype == np.float32 and float(slope) == -4.0
    strong = lambda x: np.sum(a * np.multiply(x, 2.0))  # noqa: E731
    assert wg.value_and_grad(strong)(0.5)[0].dtype == strong(0.5).dtype == np.float64


def test_one_result_returned_twice_counts_twice():
    def f(x):
        y = np.sin(x)
        return y, y

    x = np.array([0.3, 0.5])
    t = (np.ones(2), np.array([10.0, 100.0]))
    want = np.cos(x) * (t[0] + t[1])
    for g in (f, wg.checkpoint(f)):
        np.testing.assert_allclose(wg.vjp(g, x)[1](t)[0], want, rtol=1e-14)
        assert len(wg.jvp(g, (x,), (x,))[1]) == 2


def test_a_hessian_by_name():
    h = wg.hessian(lambda x, scale: np.sum(x**2) * scale**3, argnames="scale")
    assert float(h(np.ones(2), scale=2.0)) == 24.0


@pytest.mark.parametrize("of", [wg.vjp, wg.linearize])
def test_a_map_that_was_kept_gives_plain_derivatives(of):
    """The point is a constant afterwards, with no derivative with respect to it."""
    x, t = np.array([0.5, 2.0]), np.array([1.0, -3.0])
    _, kept = of(lambda x: np.cumprod(np.sin(x)) * 2.0, x)

    def linear(t):
        found = kept(t)
        return found[0] if type(found) is tuple else found

    jacobian = wg.jacobian(linear)(t)
    assert type(jacobian) is np.ndarray
    np.testing.assert_allclose(jacobian @ t, linear(t), rtol=1e-14)
    for mode in (wg.jacfwd, wg.jacrev, lambda f: wg.jit(wg.jacrev(f))):
        assert type(mode(linear)(t)) is np.ndarray
    assert type(wg.jvp(linear, (t,), (t,))[1]) is np.ndarray
    assert type(wg.jit(linear)(t)) is np.ndarray
    assert not wg.jacobian(wg.jacobian(linear))(t).any()


def test_a_map_that_was_kept_belongs_to_an_outer_derivative():
    def f(x):
        _, pull = wg.vjp(np.sin, x)
        return wg.grad(lambda t: pull(t)[0] * t)(3.0)  # 2 t cos(x)

    assert float(wg.grad(f)(0.5)) == pytest.approx(-6.0 * np.sin(0.5))


@pytest.mark.parametrize("transformation", ["jacobian", "jacfwd", "jacrev", "hessian"])
def test_messages_name_the_function_that_was_called(transformation):
    transform = getattr(wg, transformation)
    for call in (
        lambda: transform(3),
        lambda: transform(np.sin)("a"),
        lambda: transform(np.sin, argnums=2)(np.ones(2)),
        lambda: transform(np.sin)(np.array([1, 2])),
    ):
        with pytest.raises((ValueError, TypeError), match=f"^{transformation} of "):
            call()
    assert repr(transform(np.sin)) == f"<{transformation} of sin>"
    f = pickle.loads(pickle.dumps(transform(np.prod)))
    np.testing.assert_array_equal(f(np.ones(2)), transform(np.prod)(np.ones(2)))
