"""Style 002: primitives, rules in three forms, overloads, look-up."""

import math
import numbers
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import REGISTRY
from wengert.extend import jvp, primitive, vjp
from wengert.extend.primitives import matches


@pytest.fixture
def area():
    @primitive
    def area(a, b):
        """The area of a rectangle."""
        return a * b

    return area


def vjp_area(g, p, a, b):
    return g * b, g * a


def check(area):
    f = lambda a, b: area(a, b) * a  # noqa: E731
    assert [float(v) for v in wg.grad(f, (0, 1))(2.0, 3.0)] == [12.0, 4.0]
    assert float(wg.grad(lambda a: wg.grad(f)(a, 3.0))(2.0)) == 6.0
    assert float(wg.jvp(f, (2.0, 3.0), (1.0, 1.0))[1]) == 16.0


def test_inline_definition(area):
    @vjp(area)
    def rule(g, p, a, b):
        return g * b, g * a

    assert rule(1.0, 6.0, 2.0, 3.0) == (3.0, 2.0)
    check(area)


def test_assignment_of_a_lambda(area):
    vjp[area] = lambda g, p, a, b: (g * b, g * a)
    check(area)


def test_delegation_to_a_named_function(area):
    vjp[area] = vjp_area
    check(area)
    assert vjp.lookup(area) is vjp_area


def test_forward_rule_alone_gives_both_modes(area):
    @jvp(area)
    def _(dots, p, a, b):
        da, db = dots
        return (0.0 if da is None else da * b) + (0.0 if db is None else a * db)

    check(area)
    assert area in jvp and area not in vjp


def test_function_of_the_standard_library_as_primitive():
    exp = primitive(math.exp, name="tests.math.exp")
    vjp[exp] = lambda g, p, x: (g * p,)
    assert exp(1.0) == math.e
    assert float(wg.grad(wg.grad(exp))(1.0)) == pytest.approx(math.e)


def test_overloads_by_type(area):
    calls = []

    def noting(name):
        def rule(g, p, a, b):
            calls.append(name)
            return g * b, g * a

        return rule

    vjp[area] = noting("any")
    vjp[area, float, float] = noting("float")
    vjp[area, float, int] = noting("int")
    vjp[area, np.ndarray, object] = noting("array")
    vjp[area, np.ndarray, float] = noting("array, float")
    three = np.ones(3)
    cases = [(2.0, 3.0), (2.0, 3), (2.0, np.int8(3)), (three, 3.0), (three, three), (2.0, three)]
    for a, b in cases:
        wg.grad(lambda a, b=b: np.sum(area(a, b)))(a)
    assert calls == ["float", "int", "int", "array, float", "array", "any"]


@pytest.mark.parametrize(
    ("operand", "wanted", "answer"),
    [
        (2, int, True),
        (2, float, True),
        (2.0, int, False),
        (True, int, True),
        (2j, float, False),
        (2.0, complex, True),
        (np.float32(2), float, True),
        (np.float32(2), np.float32, True),
        (np.float64(2), np.float32, False),
        (np.array(2.0), float, True),
        (np.array(2.0), np.ndarray, False),
        (np.ones(2), np.ndarray, True),
        (np.ones(2), float, False),
        (np.ones(2), object, True),
        (2, numbers.Integral, True),
        (2.5, numbers.Real, True),
        (np.int16(2), np.integer, True),
        ("text", str, True),
        ("text", int, False),
        (None, type(None), True),
    ],
)
def test_types_of_operands(operand, wanted, answer):
    assert matches(operand, wanted) is answer
    if isinstance(operand, float | np.ndarray):
        assert matches(wg.tensor(operand), wanted) is answer


def test_table_of_rules(area):
    vjp[area] = vjp_area
    special = lambda g, p, a, b: (g, g)  # noqa: E731
    vjp[area, float, int] = special
    assert vjp.lookup(area, float, int) is special
    assert vjp.lookup(area, float, bool) is special
    assert vjp.lookup(area, float, float) is vjp_area
    assert vjp.lookup(area, np.ndarray, np.ndarray) is vjp_area
    assert vjp[area, float, int] is special
    assert vjp[area](1.0, 6.0, 2.0, 3.0) == (3.0, 2.0)  # by the operands' types
    assert vjp[area](1.0, 6.0, 2.0, 3) == (1.0, 1.0)
    assert [s for op, s, _ in vjp.rules() if op is area] == [(object, object), (float, int)]
    assert area in vjp and area in list(vjp) and len(vjp) >= 1
    vjp[area, float, int] = vjp_area
    assert vjp.lookup(area, float, int) is vjp_area
    del vjp[area, float, int]
    del vjp[area]
    assert area not in vjp
    with pytest.raises(wg.errors.NotDifferentiableError, match="area"):
        wg.grad(area)(1.0, 2.0)


def test_operands_by_name_and_parameters_by_keyword():
    @primitive
    def scaled(x, y, *, factor=1.0):
        return factor * x * y

    @vjp(scaled)
    def _(g, p, x, y, *, factor=1.0):
        return g * (factor * y), g * (factor * x)

    assert float(wg.grad(lambda x: scaled(x, y=3.0, factor=2.0))(1.0)) == 6.0
    assert scaled(y=2.0, x=3.0) == 6.0


def test_omitted_operand_is_a_constant():
    @primitive
    def scaled(x, y=3.0):
        return x * y

    vjp[scaled] = lambda g, p, x, y: (g * y, g * x)
    assert float(wg.grad(scaled)(2.0)) == 3.0
    assert [float(v) for v in wg.grad(lambda x, y: scaled(x, y=y), (0, 1))(2.0, 5.0)] == [5.0, 2.0]


def test_ufunc_as_primitive():
    hypot = primitive(np.hypot)
    assert hypot.name == "numpy.hypot"
    vjp[hypot] = lambda g, p, x, y: (g * x / p, g * y / p)
    assert [float(v) for v in wg.grad(hypot, (0, 1))(3.0, 4.0)] == pytest.approx([0.6, 0.8])


def test_any_number_of_operands():
    @primitive
    def product(*xs):
        return math.prod(xs[1:], start=xs[0])

    @vjp(product)
    def _(g, p, *xs):
        return tuple(
            g * math.prod((x for k, x in enumerate(xs) if k != i), start=1.0)
            for i in range(len(xs))
        )

    assert [float(v) for v in wg.grad(product, (0, 1, 2))(2.0, 3.0, 4.0)] == [12.0, 8.0, 6.0]


def test_several_outputs():
    @primitive
    def polar(x, y):
        return np.hypot(x, y), np.arctan2(y, x)

    @vjp(polar)
    def _(g, p, x, y):
        (gr, ga), (r, _) = g, p
        return gr * x / r - ga * y / (r * r), gr * y / r + ga * x / (r * r)

    def back(x, y):
        r, angle = polar(x, y)
        return r * np.cos(angle) + 2.0 * r * np.sin(angle)

    assert [float(v) for v in wg.grad(back, (0, 1))(0.6, 0.8)] == pytest.approx([1.0, 2.0])


def test_none_for_an_operand_without_derivative():
    @primitive
    def pick(x, i):
        return x[i]

    @vjp(pick)
    def _(g, p, x, i):
        hot = np.zeros(np.shape(x))
        hot[i] = 1.0
        return g * hot, None

    np.testing.assert_array_equal(wg.grad(lambda x: pick(x, 1))(np.ones(3)), [0.0, 1.0, 0.0])


def test_redefinition_in_the_same_module_replaces(area):
    assert REGISTRY[area.name] is area
    assert area.name.endswith("test_primitives.area.area")

    def again():
        @primitive
        def f(x):
            return x

        return f

    first, second = again(), again()
    assert first is not second and REGISTRY[second.name] is second
    assert pickle.loads(pickle.dumps(second)) is second
    with pytest.raises(wg.errors.RegistryError, match="registered already"):
        primitive(math.sin, name="sin")


def test_calls_on_plain_values_call_the_function(area):
    assert area.__wrapped__(2, 3) == area(2, 3) == 6
    assert type(area(2, 3)) is int
    assert area.__doc__ == "The area of a rectangle."
    assert repr(area).startswith("<wengert opaque operation")
    x = wg.tensor([1.0], requires_grad=True)
    assert area(x, 2.0).grad_fn_name == "AreaBackward"


def test_branch_not_taken_gives_no_nan(area):
    @primitive
    def log(x):
        return np.log(x)

    vjp[log] = lambda g, p, x: (g / x,)
    f = lambda x: np.where(x > 0, log(x), 0.0)  # noqa: E731
    with np.errstate(divide="ignore"):
        assert float(wg.grad(f)(0.0)) == 0.0


def test_forward_mode_of_a_rule_that_returns_one_value_twice():
    """The forward rule that the engine derives used only one of the two contributions."""

    @primitive
    def plus(x, y):
        return x + y

    vjp[plus] = lambda g, p, x, y: (g, g)
    assert float(wg.jvp(plus, (1.0, 2.0), (1.0, 10.0))[1]) == 11.0
    assert float(wg.jvp(lambda x: plus(x, x), (1.0,), (1.0,))[1]) == 2.0


@pytest.mark.parametrize("callback", [None, True])
def test_static_operands(callback):
    """Strings, None and objects are stored in the node, also under transformations."""

    @primitive(callback=callback)
    def scaled(x, mode, y, factors=None):
        first = x if callback is None else np.array([float(v) for v in x])  # plain values only
        return first * y * (2.0 if mode == "twice" else (factors or {})["other"])

    @vjp(scaled)
    def _(g, p, x, mode, y, factors):
        k = 2.0 if mode == "twice" else factors["other"]
        return g * k * y, None, np.sum(g * k * x), None

    @jvp(scaled)
    def _(dots, p, x, mode, y, factors):
        assert dots[1] is None and dots[3] is None
        k = 2.0 if mode == "twice" else factors["other"]
        return sum(d * k * z for d, z in ((dots[0], y), (dots[2], x)) if d is not None)

    def f(x, y):
        return scaled(x, "twice", y) + scaled(x, "other", y, {"other": 5.0})

    x, y = np.array([1.0, 2.0]), 3.0
    slopes = wg.grad(lambda x, y: np.sum(f(x, y) ** 2), (0, 1))
    for way in (lambda f: f, wg.jit, lambda f: wg.trace(f)(x, y)):
        np.testing.assert_allclose(way(f)(x, y), 7.0 * x * y)
        dx, dy = way(slopes)(x, y)
        np.testing.assert_allclose(dx, 98.0 * x * y**2)
        np.testing.assert_allclose(dy, 98.0 * np.sum(x * x) * y)
    np.testing.assert_allclose(wg.jvp(wg.jit(f), (x, y), (x, 1.0))[1], 7.0 * (x * y + x))
    rows = np.stack([x, -x, 2.0 * x])
    np.testing.assert_allclose(wg.vmap(lambda x: f(x, y))(rows), 7.0 * rows * y)
    found = wg.vmap(lambda x: slopes(x, y)[0])(rows)
    np.testing.assert_allclose(found, 98.0 * rows * y**2)
