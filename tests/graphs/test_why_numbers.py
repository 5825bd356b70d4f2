"""why: gradients that are not finite, huge or tiny, and slow programs, each with its cause."""

import inspect

import numpy as np
import pytest

import wengert as wg
from wengert._engine.diagnostics import slow_gradients


def marked(f):
    """The number of the line of a function that bears the mark `# here`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if "# here" in text)


X = np.array([1.5, 0.5, 2.5])


# ---- not a number, infinite --------------------------------------------------------------------


def log_of_negative(x):
    h = x - 2.0
    return np.sum(np.log(h))  # here


def zero_by_zero(x):
    h = x - X
    return np.sum(h / h)  # here


def overflowing(x):
    h = np.exp(1000.0 * x)  # here
    return np.sum(h / (1.0 + h))


def arccos_outside(x):
    return np.sum(np.arccos(x))  # here


def constant_nan(x):
    data = np.array([1.0, np.nan, 2.0])
    return np.sum(x * data)  # here


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (log_of_negative, "operation"),
        (zero_by_zero, "operation"),
        (overflowing, "overflow"),
        (arccos_outside, "operation"),
        (constant_nan, "constant"),
    ],
)
def test_where_a_value_went_wrong(f, kind):
    found = wg.why(f, X)
    assert found[0].kind == kind and found[0].symptom in ("nan", "infinite")
    assert found[0].line == marked(f)


def test_infinity_that_turns_into_nan():
    def f(x):
        h = x * 1e308 * 1e10  # here
        return np.sum(h - h)

    found = wg.why(f, X)
    assert found.kinds == ("overflow",) and found[0].line == marked(f)
    assert "became NaN in subtract" in found[0].message


def test_an_infinite_constant_is_good_until_it_turns():
    def f(x):
        scores = np.where(np.zeros(3, bool), x, -np.inf)  # constant
        scores = scores - np.max(scores)  # here
        return np.sum(np.exp(scores))

    found = wg.why(f, X)
    assert found.kinds == ("operation",) and found[0].line == marked(f)
    assert "subtract of -inf and -inf is nan" in found[0].message
    assert f"{__file__}:{marked(f) - 1}" in found[0].message


def test_a_denominator_that_overflowed():
    def f(x):
        e = np.exp(-1000.0 * x)  # here
        return 1.0 / (1.0 + e)

    found = wg.why(f, -1.0)
    assert (found.kinds, found.symptoms) == (("overflow",), ("zero",))
    assert found[0].line == marked(f) and "exp of 1000 is inf" in found[0].message
    assert f"So divide float64[] is flat at {__file__}:{marked(f) + 1}" in found[0].message


def test_the_gradient_after_an_overflow_is_that_of_grad():
    x = 1e200 * X
    with np.errstate(all="ignore"):
        found, gradient = wg.why(np.linalg.norm, x), wg.grad(np.linalg.norm)(x)
    assert np.all(gradient != 0.0) and np.array_equal(found.gradient, gradient)
    assert found.kinds == ("overflow",)


def test_nothing_chosen():
    found = wg.why(lambda x: np.sum(x[x > 10.0]), X)
    assert found.kinds == ("unchosen",) and "no elements" in found[0].message


def test_checkpoints_have_lines():
    def f(x):
        return wg.checkpoint(lambda z: np.sum(np.sqrt(z)))(x)  # here

    found = wg.why(f, np.zeros(2))
    assert found.kinds == ("singular",) and found[0].line == marked(f)


def test_a_nan_in_the_input():
    found = wg.why(lambda x: np.sum(x * x), np.array([1.0, np.nan]))
    assert found.kinds == ("input",) and "(element (1,))" in found[0].message


def root_at_zero(x):
    h = np.sqrt(x - X)  # here
    return np.sum(h)


def root_of_square(x):
    h = (x - X) ** 2
    return np.sum(np.sqrt(h))  # here


def power_of_a_half(x):
    h = x - X
    return np.sum(np.power(np.abs(h), 0.5))  # here


def arcsin_at_one(x):
    return np.sum(np.arcsin(x / X))  # here


@pytest.mark.parametrize(
    ("f", "symptom"),
    [
        (root_at_zero, "infinite"),
        (root_of_square, "nan"),
        (power_of_a_half, "infinite"),
        (arcsin_at_one, "infinite"),
    ],
)
def test_where_a_slope_was_singular(f, symptom):
    found = wg.why(f, X)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found.gradient, wg.grad(f)(X))
    assert found[0].kind == "singular" and found[0].line == marked(f)
    assert "0" in found[0].message and "np." in found[0].message


def test_infinities_of_both_signs():
    def f(x):
        return np.sum(np.sqrt(x) * np.array([1.0, -1.0]))

    np.testing.assert_array_equal(wg.grad(f)(np.zeros(2)), [np.inf, -np.inf])
    np.testing.assert_array_equal(wg.why(f, np.zeros(2)).gradient, [np.inf, -np.inf])
    jacobian = wg.jacobian(lambda x: np.sum(np.sqrt(x)) * np.array([1.0, -1.0]))(np.zeros(1))
    np.testing.assert_array_equal(jacobian, [[np.inf], [-np.inf]])
    x_dot = wg.jvp(lambda x: np.sqrt(x) * np.array([1.0, -1.0]), (np.zeros(2),), (np.ones(2),))[1]
    np.testing.assert_array_equal(x_dot, [np.inf, -np.inf])


def test_the_bad_element_is_named():
    found = wg.why(lambda x: np.sum(np.sqrt(x)), np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert "element (1, 0)" in found[0].message and "at 0 is inf" in found[0].message


def test_zero_times_infinity_is_reported():
    found = wg.why(root_of_square, X)
    assert "0 * inf is NaN" in found[0].message


def test_a_cotangent_that_overflows():
    def f(x):
        h = x * 1e200  # here
        return np.sum(h * 1e-100 * 1e250)

    found = wg.why(f, X * 1e-100)
    assert found.kinds == ("overflow",) and found[0].line == marked(f)


def test_float32_overflow():
    found = wg.why(lambda x: np.sum(np.exp(x)), np.array([100.0], np.float32))
    assert found.kinds == ("overflow",) and "float64 has a larger range" in found[0].message
    assert not wg.why(lambda x: np.log(np.sum(np.exp(x))), np.array([100.0]))


def test_second_order_singular():
    def f(x):
        return np.sum(x**1.5)  # here

    found = wg.why(wg.grad(f), 0.0)
    assert found.kinds == ("singular",) and found[0].line == marked(f)


def test_complex_singular():
    found = wg.why(lambda z: np.sum(np.sqrt(z)).real, np.zeros(2, complex))
    assert found.kinds == ("singular",)


# ---- huge and tiny -----------------------------------------------------------------------------


def exploding(x):
    for _ in range(60):
        x = 3.0 * x  # here
    return np.sum(x)


def decaying(x):
    for _ in range(30):
        x = 0.2 * x  # here
    return np.sum(x)


def test_exploding():
    found = wg.why(exploding, X)
    assert (found.kinds, found.symptoms) == (("growth",), ("huge",))
    assert found[0].line == marked(exploding) and "60 operations" in found[0].message


def test_vanishing():
    found = wg.why(decaying, X)
    assert (found.kinds, found.symptoms) == (("decay",), ("tiny",))
    assert found[0].line == marked(decaying)


def test_rounding_errors_that_are_left_over():
    def f(x):
        e = np.exp(x)
        return np.sum(e / np.sum(e))

    assert wg.why(f, X).kinds == ("cancelled",)
    assert wg.why(lambda x: np.sum(0.1 * x + 0.2 * x - 0.3 * x), X).kinds == ("cancelled",)


# ---- slow --------------------------------------------------------------------------------------


def test_a_loop():
    def f(x):
        total = 0.0
        for i in range(500):
            total = total + x[i % 3]  # here
        return total

    found = wg.why(f, X)
    assert found.kinds == ("loop",) and found[0].line == marked(f)


def test_a_repetition():
    def f(x):
        a = np.sin(x)  # here
        return np.sum(a * np.sin(x))

    found = wg.why(f, np.ones(200_000))
    assert found.kinds == ("repeated",) and found[0].line == marked(f)


def test_a_broadcast():
    def f(x):
        d = x[:, None] - x[None, :]  # here
        return np.sum(d * d)

    found = wg.why(f, np.linspace(0.0, 1.0, 1500))
    assert "broadcast" in found.kinds and found[0].line == marked(f)


def test_copies():
    def f(x):
        h, kept = x * 1.0, []
        for i in range(20):
            kept.append(h.numpy())
            h[i] = 0.5  # here
        return np.sum(h)

    found = wg.why(f, np.ones(1000))
    assert found.kinds == ("copies",) and found[0].line == marked(f)


def test_watched_constants():
    data = np.ones(1 << 20)

    def f(x):
        total = 0.0
        for _ in range(10):
            total = total + np.sum(data * x)  # here
        return total

    found = wg.why(f, 2.0)
    assert "watched" in found.kinds
    assert next(f for f in found if f.kind == "watched").line == marked(f)


def test_time(monkeypatch):
    def f(x):
        h = np.linalg.inv(x)  # here
        return np.sum(h) * 2.0

    assert {f.kind for f in wg.why(f, np.eye(3) * 2.0, time=True)} == {"time"}  # of whichever line
    # Durations that do not depend on the machine.
    monkeypatch.setattr(slow_gradients, "_seconds", lambda node, t: float(node.op.name == "inv"))
    found = wg.why(f, np.eye(3) * 2.0, time=True)
    assert found.kinds == ("time",) and found[0].line == marked(f)


def test_the_fastest_of_three_runs_of_an_operation_counts(monkeypatch):
    clock = iter([0.0, 9.0, 10.0, 11.0, 20.0, 24.0])
    monkeypatch.setattr(slow_gradients.time, "perf_counter", lambda: next(clock))
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    assert slow_gradients._seconds(np.sin(x).node, np.ones(2)) == 1.0
