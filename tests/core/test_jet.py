"""jet: derivatives of high order along a curve, against closed forms and nested forward mode.

Every operation is compared with nested forward mode by tests/laws/test_series_agree.py; here are
the interface, loops and branches, rules of users, composition with other transformations, and
orders at which nested forward mode would take minutes.
"""

from math import comb, factorial

import numpy as np
import pytest

import wengert as wg
import wengert.scipy.special as special
from wengert.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
    StructureError,
)

X = np.array([0.3, 0.7, 1.1])
V = np.array([1.0, -0.5, 0.3])


def nested(f, order, x=X, v=V):
    """The derivatives of order 0 to `order` in the direction v, by nested forward mode."""
    found = [f(x)]
    for _ in range(order):
        f = directional(f, v)
        found.append(f(x))
    return found


def directional(f, v):
    return lambda x: wg.jvp(f, (x,), (v,))[1]


def straight(v, order):
    """The series of a straight line in the direction v."""
    return [v, *[np.zeros_like(v)] * (order - 1)]


def agree(f, order=4, x=X, v=V, rtol=1e-11):
    """jet agrees with nested forward mode, eager and compiled."""
    want = nested(f, order, x, v)
    terms = straight(v, order)
    value, found = wg.jet(f, (x,), (terms,))
    for g, w in zip([value, *found], want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)
    value, found = wg.jit(lambda x, terms: wg.jet(f, (x,), (terms,)))(x, terms)
    for g, w in zip([value, *found], want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


# ---- interface ---------------------------------------------------------------------------------


def test_the_chain_rule_of_faa_di_bruno():
    """sin(z**3) along z: the example of jax.experimental.jet."""
    h0, h1, h2 = 0.5**3, 3 * 0.5**2, 6 * 0.5
    f0, (f1, f2) = wg.jet(np.sin, (h0,), ((h1, h2),))
    assert np.isclose(f0, np.sin(h0))
    assert np.isclose(f1, np.cos(h0) * h1)
    assert np.isclose(f2, -np.sin(h0) * h1**2 + np.cos(h0) * h2)


def test_a_curve_in_several_arguments():
    f0, (f1, f2) = wg.jet(lambda x, y: x * y, (2.0, 3.0), ([1.0, 5.0], [-1.0, 7.0]))
    assert (f0, f1, f2) == (6.0, 1.0, 5.0 * 3.0 + 2 * 1.0 * -1.0 + 2.0 * 7.0)


def test_taylor_coefficients_without_factorials():
    value, terms = wg.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose([value, *terms], [1 / factorial(k) for k in range(5)])


def test_containers():
    def f(d, y):
        return {"square": d["x"] ** 2, "pair": (d["x"] * y, 3)}

    value, terms = wg.jet(f, ({"x": 2.0}, 3.0), ([{"x": 1.0}, {"x": 0.0}], [0.0, 1.0]))
    assert value == {"square": 4.0, "pair": (6.0, 3)}
    assert terms == {"square": [4.0, 2.0], "pair": ([3.0, 2.0], [0, 0])}


def test_order_zero_and_constant_results():
    assert wg.jet(np.sin, (1.0,), ([],)) == (np.sin(1.0), [])
    value, terms = wg.jet(lambda x: np.ones(2), (1.0,), ([1.0, 2.0],))
    assert value.tolist() == [1.0, 1.0]
    assert [t.tolist() for t in terms] == [[0.0, 0.0]] * 2


def test_dtypes_are_kept():
    x = np.float32([0.5, 1.5])
    value, terms = wg.jet(np.tanh, (x,), ([x, x, x],))
    assert {a.dtype for a in (value, *terms)} == {np.dtype(np.float32)}
    z = np.array([1.0 + 1.0j])
    _, terms = wg.jet(lambda z: z**3, (z,), ([np.ones_like(z), np.zeros_like(z)],))
    np.testing.assert_allclose(terms, [3 * z**2, 6 * z])


def test_operands_are_not_changed():
    x, v = X.copy(), V.copy()
    value, terms = wg.jet(lambda x: x, (x,), ([v, v],))
    value += 1.0
    terms[0] += 1.0
    assert np.array_equal(x, X) and np.array_equal(v, V)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wg.jet(np.sin, 1.0, [1.0]), StructureError, "must be tuples"),
        (lambda: wg.jet(np.sin, (1.0,), ([1.0], [1.0])), StructureError, "1 primals and 2 series"),
        (lambda: wg.jet(np.sin, (1.0,), (1.0,)), StructureError, "a list of its terms"),
        (
            lambda: wg.jet(np.multiply, (1.0, 2.0), ([1.0], [1.0, 2.0])),
            StructureError,
            "have 1 and 2 terms",
        ),
        (lambda: wg.jet(np.sin, (X,), ([1.0],)), ShapeError, "has shape"),
        (lambda: wg.jet(np.sin, (1.0,), ([1.0j],)), DtypeError, "complex"),
        (lambda: wg.jet(np.sin, (1,), ([1.0],)), NotDifferentiableError, "only floating"),
        (lambda: wg.jet(3, (1.0,), ([1.0],)), ArgumentError, "not a function"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- closed forms at high order ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (np.exp, 0.5, lambda k: np.exp(0.5)),
        (np.sin, 0.5, lambda k: np.sin(0.5 + k * np.pi / 2)),
        (lambda x: 1 / (1 - x), 0.5, lambda k: factorial(k) * 2.0 ** (k + 1)),
        (np.log, 2.0, lambda k: -((-0.5) ** k) * factorial(k - 1) if k else np.log(2.0)),
        (
            np.sqrt,
            1.0,
            lambda k: float(np.prod([0.5 - j for j in range(k)])),
        ),
        (lambda x: x**2.5, 1.0, lambda k: float(np.prod([2.5 - j for j in range(k)]))),
        (lambda x: x**5, 1.0, lambda k: float(np.prod([5 - j for j in range(k)]))),
        (lambda x: np.exp(2 * x) * x**2, 0.0, lambda k: k * (k - 1) * 2.0 ** (k - 2)),
        (
            lambda x: 1 / (1 + x * x),
            0.0,
            lambda k: 0.0 if k % 2 else (-1) ** (k // 2) * factorial(k),
        ),
        (np.arcsinh, 0.0, lambda k: _arcsinh(k)),
    ],
)
def test_order_twelve(f, x, want):
    order = 12
    value, terms = wg.jet(f, (x,), (straight(1.0, order),))
    exact = np.array([want(k) for k in range(order + 1)])
    np.testing.assert_allclose([value, *terms], exact, rtol=1e-10, atol=1e-9)


def _arcsinh(k):
    if k % 2 == 0:
        return 0.0
    m = (k - 1) // 2
    return (-1) ** m * comb(2 * m, m) / 4.0**m / (2 * m + 1) * factorial(k)


def test_tangent_to_order_nine():
    _, terms = wg.jet(np.tan, (0.0,), (straight(1.0, 9),))
    np.testing.assert_allclose(terms, [1, 0, 2, 0, 16, 0, 272, 0, 7936], atol=1e-9)


def test_chains_of_different_functions():
    """The derivatives of a Bessel function are Bessel functions of other orders."""
    _, terms = wg.jet(lambda x: special.jv(0.5, x), (1.3,), (straight(1.0, 10),))
    _, closed = wg.jet(lambda x: np.sqrt(2 / (np.pi * x)) * np.sin(x), (1.3,), (straight(1.0, 10),))
    np.testing.assert_allclose(terms, closed, rtol=1e-8)


def test_the_number_of_nodes_grows_with_the_square_of_the_order():
    def nodes(order):
        def f(x):
            return wg.jet(
                lambda x: np.exp(np.sin(x)) / (1.0 + x * x),
                (x,),
                ([x, *[np.zeros_like(x)] * (order - 1)],),
            )

        return len(wg.trace(f)(np.ones(3)).nodes)

    assert nodes(16) < 4.5 * nodes(8)


# ---- functions ---------------------------------------------------------------------------------


def recurrence(x):
    y = np.zeros(5)
    y[0] = x[0]
    for i in range(1, 5):
        y[i] = np.sin(y[i - 1]) * x[1] + y[i - 1] ** 2
    return y


def loop(x):
    return wg.fori_loop(0, 12, lambda i, c: np.sin(c) * 1.1 + 0.1 * x, x)


def checkpointed_loop(x):
    body = lambda c, _: (np.sin(c) * 1.1 + 0.1 * c * c, None)  # noqa: E731
    return wg.scan(body, x, length=20, memory=400)[0]


FUNCTIONS = {
    "products": lambda x: np.outer(x, x) @ np.sin(x),
    "solve": lambda x: np.linalg.solve(3 * np.eye(3) + np.outer(x, x), x),
    "cholesky": lambda x: np.linalg.cholesky(np.eye(3) + np.outer(x, x)),
    "eigenvalues": lambda x: np.linalg.eigvalsh(np.diag(x) + 0.1),
    "determinant": lambda x: np.linalg.det(np.eye(3) + np.outer(x, x)) * x,
    "sort": lambda x: np.sort(x * x[::-1]) ** 2,
    "maximum": lambda x: np.max(x) * np.minimum(x, 0.5),
    "sums": lambda x: np.log(np.sum(np.exp(x))) + np.cumsum(x) * np.prod(x),
    "indices": lambda x: x[np.array([2, 0, 0])] * x**3,
    "mask": lambda x: x[np.array([True, False, True])] ** 3,
    "where": lambda x: np.where(x > 0.5, np.sin(x), x * x),
    "assignment": recurrence,
    "fori_loop": loop,
    "scan": lambda x: wg.scan(lambda c, y: (np.sin(c) * y + c, c * c), x[0], x)[1],
    "while_loop": lambda x: wg.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, np.sin(c[1]) * c[1]), (0, x)
    )[1],
    "cond": lambda x: wg.cond(np.sum(x) > 0, lambda x: np.sin(x) * x[0], lambda x: x, x),
    "switch": lambda x: wg.switch(1, [lambda x: x, lambda x: np.exp(x) * x], x),
    "checkpoint": wg.checkpoint(lambda x: np.sin(x) * x),
    "checkpointed loop": checkpointed_loop,
    "gradient": wg.grad(lambda x: np.sum(np.sin(x) * np.exp(x))),
    "gradient of a loop": wg.grad(lambda x: np.sum(loop(x))),
    "gradient of a checkpointed loop": wg.grad(lambda x: np.sum(checkpointed_loop(x))),
    "gradient of a checkpoint": wg.grad(wg.checkpoint(lambda x: np.sum(np.sin(x) * x))),
    "vmap": wg.vmap(lambda x: np.sin(x) ** 2),
    "jit": wg.jit(lambda x: np.sin(x) * x),
    "jet": lambda x: wg.jet(np.sin, (x,), ([x, x],))[1][1],
}


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    agree(FUNCTIONS[name], order=3)


@wg.custom_jvp
def sine_by_jvp(x):
    return np.sin(x)


sine_by_jvp.defjvp(lambda p, t: (np.sin(p[0]), np.cos(p[0]) * t[0]))


@wg.custom_vjp
def sine_by_vjp(x):
    return np.sin(x)


sine_by_vjp.defvjp(lambda x: (np.sin(x), x), lambda x, t: (np.cos(x) * t,))


def newton(f, y):
    for _ in range(30):
        value, slope = wg.jvp(f, (y,), (np.ones_like(y),))
        y = y - value / slope
    return y


@pytest.mark.parametrize(
    "f",
    [
        sine_by_jvp,
        sine_by_vjp,
        lambda a: wg.custom_root(lambda y: y**3 + y - a, np.ones(3), newton),
    ],
)
def test_rules_of_users(f):
    agree(f, order=3)


def test_a_root_has_the_series_of_the_inverse_function():
    _, terms = wg.jet(
        lambda a: wg.custom_root(lambda y: np.exp(y) - a, 0.0, newton), (2.0,), (straight(1.0, 5),)
    )
    _, want = wg.jet(np.log, (2.0,), (straight(1.0, 5),))
    np.testing.assert_allclose(terms, want, rtol=1e-10)


# ---- composition -------------------------------------------------------------------------------


def third(x):
    """The third derivative of a scalar function in the direction V."""
    return wg.jet(lambda x: np.sum(np.sin(x) * np.exp(x)), (x,), (straight(V, 3),))[1][2]


def third_nested(x):
    return nested(lambda x: np.sum(np.sin(x) * np.exp(x)), 3, x)[3]


def test_derivatives_of_a_series():
    want = wg.grad(third_nested)(X)
    np.testing.assert_allclose(wg.grad(third)(X), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(third))(X), want, rtol=1e-12)
    np.testing.assert_allclose(wg.hessian(third)(X), wg.hessian(third_nested)(X), atol=1e-12)


def test_derivatives_with_respect_to_terms():
    def second(v):
        return wg.jet(lambda x: np.sum(x**3), (X,), ([v, np.zeros(3)],))[1][1]

    np.testing.assert_allclose(wg.grad(second)(V), 12 * X * V)


def test_batches():
    rows = np.stack([X, 2 * X])
    want = [third_nested(x) for x in rows]
    np.testing.assert_allclose(wg.vmap(third)(rows), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(third))(rows), want, rtol=1e-12)


def test_tensors_record_the_series():
    x = wg.tensor(X, requires_grad=True)
    _, terms = wg.jet(lambda x: np.sum(x**3), (x,), (straight(V, 2),))
    terms[1].backward()
    np.testing.assert_allclose(x.grad, 6 * V * V)


def test_symbolic_sizes():
    def f(x):
        v = np.ones_like(x)
        return wg.jet(lambda x: np.sum(np.exp(x)) * x, (x,), ([v, np.zeros_like(x)],))[1]

    graph = wg.trace(f)(wg.spec("n"))
    want = nested(lambda x: np.sum(np.exp(x)) * x, 2, X, np.ones(3))[1:]
    np.testing.assert_allclose(graph(X), want, rtol=1e-12)


# ---- branches that are not taken ---------------------------------------------------------------


def test_a_branch_not_taken_has_a_zero_series():
    def f(x):
        safe = np.where(x > 0, x, 0.0)
        return np.where(x > 0, np.sqrt(safe) + np.log(safe) / safe**1.5, 0.0)

    x = np.array([-1.0, 0.0, 0.7])
    with np.errstate(all="ignore"):
        for g in (f, wg.jit(f)):
            _, terms = wg.jet(g, (x,), (straight(V, 3),))
            for k in range(3):
                assert terms[k][:2].tolist() == [0.0, 0.0]
                _, alone = wg.jet(
                    lambda x: np.sqrt(x) + np.log(x) / x**1.5, (0.7,), ([0.3, 0.0, 0.0],)
                )
                np.testing.assert_allclose(terms[k][2], alone[k])
        compiled = wg.jit(lambda x: wg.jet(f, (x,), (straight(V, 3),))[1])(x)
    np.testing.assert_allclose(compiled, terms)


def test_powers_at_zero():
    """An exponent chain, not x' / x: derivatives at zero are exact as long as they exist."""
    _, terms = wg.jet(lambda x: x**2.5 + x**3, (0.0,), ([1.0, 0.0],))
    np.testing.assert_allclose(terms, [0.0, 0.0])


# ---- random programs ---------------------------------------------------------------------------

UNARY = [np.sin, np.exp, np.tanh, lambda x: np.log(x * x + 1.5), lambda x: np.sqrt(x * x + 1.0)]
BINARY = [np.add, np.multiply, np.subtract, np.maximum, lambda x, y: x / (y * y + 2.0)]


def random_program(rng):
    steps = [
        (rng.integers(len(UNARY)), rng.integers(len(BINARY)), rng.integers(0, 1000, size=2))
        for _ in range(6)
    ]

    def f(x):
        values = [x, x[::-1] * 0.5]
        for u, b, (i, j) in steps:
            values.append(BINARY[b](UNARY[u](values[i % len(values)]), values[j % len(values)]))
            values.append(np.sum(values[-1]) * 0.1 * x)
        return values[-1] + values[-2]

    return f


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    agree(random_program(np.random.default_rng(seed)), order=3, rtol=1e-9)


# ---- overflows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: np.log1p(np.exp(x)), 800.0, 1.0),
        (lambda x: 1.0 / (1.0 + np.exp(-x)), -800.0, 0.0),
        (lambda x: np.log(np.sum(np.exp(np.array([1.0, 2.0]) * x))), 800.0, 2.0),
    ],
)
def test_overflows_of_intermediate_values(f, x, slope):
    """Compositions that simplification stabilizes have right series, eager and compiled."""
    with np.errstate(all="ignore"):
        for call in (wg.jet, wg.jit(lambda f, p, s: wg.jet(f, p, s), static_argnums=0)):
            _, terms = call(f, (x,), ([1.0, 0.0],))
            np.testing.assert_allclose(terms, [slope, 0.0])
