"""why: gradients of zeros, whole and in one element, each with its known cause."""

import inspect

import numpy as np
import pytest

import wengert as wg


def marked(f):
    """The number of the line of a function that bears the mark `# here`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if "# here" in text)


X = np.array([1.5, 0.5, 2.5])


# ---- zero --------------------------------------------------------------------------------------


def masked(x):
    h = np.where(x > 10.0, x, 0.0)  # here
    return np.sum(3.0 * h)


def saturated_relu(x):
    return np.sum(wg.nn.functional.relu(x - 9.0))  # here


def clipped(x):
    return np.sum(np.clip(x, -1.0, 0.1))  # here


def not_chosen(x):
    return np.sum(np.maximum(x, 10.0))  # here


def times_zero(x):
    w = np.zeros(3)
    return np.sum(w * x)  # here


def matrix_of_zeros(x):
    return np.sum(np.zeros((2, 3)) @ x)  # here


def two_zero_factors(x):
    h = x - x[0]
    return np.prod(np.concatenate([h, np.zeros(1)]))  # here


def underflow(x):
    return np.sum(np.exp(-2000.0 * x))  # here


def flat_tanh(x):
    return np.sum(np.tanh(1000.0 * x))  # here


def vanished(x):
    h = 1e-200 * x  # here
    return np.sum(1e-200 * h)


def kink(x):
    return np.sum(np.abs(x - X))  # here


def norm_at_zero(x):
    return np.linalg.norm(x - X)  # here


def stationary(x):
    return np.sum((x - X) ** 2)  # here


def cancelled(x):
    h = 2.0 * x
    return np.sum(h - h)  # here


def overwritten(x):
    h = x * 2.0
    h[:] = 1.0  # here
    return np.sum(h)


def unread(x):
    h = np.zeros(4, like=x)
    h[:3] = x  # here
    return h[3]


def power_zero(x):
    return np.sum(x**0.0)  # here


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (masked, "masked"),
        (saturated_relu, "saturated"),
        (clipped, "saturated"),
        (not_chosen, "unchosen"),
        (times_zero, "multiplied"),
        (matrix_of_zeros, "multiplied"),
        (two_zero_factors, "multiplied"),
        (underflow, "underflow"),
        (flat_tanh, "saturated"),
        (vanished, "vanished"),
        (kink, "kink"),
        (norm_at_zero, "kink"),
        (stationary, "flat"),
        (cancelled, "cancelled"),
        (overwritten, "overwritten"),
        (unread, "overwritten"),
        (power_zero, "flat"),
    ],
)
def test_where_the_cotangent_became_zero(f, kind):
    found = wg.why(f, X)
    assert not np.any(found.gradient) and found.gradient.shape == X.shape
    np.testing.assert_array_equal(found.gradient, wg.grad(f)(X))
    assert (found[0].kind, found[0].symptom) == (kind, "zero")
    assert found[0].line == marked(f)


def test_both_branches_of_a_choice():
    def f(x):
        return np.sum(np.where(x > 0, wg.nn.functional.relu(-x), wg.nn.functional.relu(x)))

    assert wg.why(f, X).kinds == ("masked", "saturated")


def test_where_the_other_operand_became_zero():
    def f(x):
        h = np.maximum(x - 9.0, 0.0)
        return np.sum(h * h)  # here

    found = wg.why(f, X)
    assert found.kinds == ("multiplied",) and found[0].line == marked(f)
    assert f"became zero in maximum float64[3] at {__file__}:{marked(f) - 1}" in found[0].message


def test_a_branch_not_taken_is_not_blamed():
    def f(x):
        h = np.clip(x, 7.0, 8.0)  # here
        h = np.where(h > 1.0, np.sin(h), np.cos(h))
        return np.sum(h)

    found = wg.why(f, X)
    assert found.kinds == ("saturated",) and found[0].line == marked(f)


def element_not_read(x):
    h = 2.0 * x
    return np.sum(h[:2])  # here


def element_masked(x):
    h = np.where(x > 2.0, 0.1, x)  # here
    return np.sum(np.sin(h))


def element_saturated(x):
    h = wg.nn.functional.relu(2.0 - x)  # here
    return np.sum(h * h)


def element_not_the_largest(x):
    return np.max(-x)  # here


def element_times_zero(x):
    return np.sum((x * np.array([1.0, 1.0, 0.0])) ** 3)  # here


def element_of_a_product(x):
    return np.sum(np.array([[1.0, 2.0, 0.0]]) @ x)  # here


def element_overwritten(x):
    h = x * 3.0
    h[2] = 1.0  # here
    return np.sum(h)


def element_cancelled(x):
    h = x - x * np.array([2.0, 2.0, 1.0])  # here
    return np.sum(h)


def element_added_and_subtracted(x):
    return np.sum(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]) @ x)


def element_underflow(x):
    return np.sum(np.exp(-900.0 * (x - 1.0)))  # here


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (element_not_read, "unchosen"),
        (element_masked, "masked"),
        (element_saturated, "saturated"),
        (element_not_the_largest, "unchosen"),
        (element_times_zero, "multiplied"),
        (element_of_a_product, "multiplied"),
        (element_overwritten, "overwritten"),
        (element_cancelled, "cancelled"),
        (element_underflow, "underflow"),
    ],
)
def test_why_one_element_is_zero(f, kind):
    gradient = wg.grad(f)(X)
    assert gradient[2] == 0 and np.any(gradient)
    found = wg.why(f, X, index=2)
    assert found.kinds == (kind,) and found[0].symptom == "zero", str(found)
    assert found[0].line == marked(f)
    assert "zero at 2" in found.summary
    other = int(np.argmax(gradient != 0))
    assert not wg.why(f, X, index=other) and f" at {other}." in wg.why(f, X, index=other).summary


def test_an_element_that_cancels_in_a_sum():
    found = wg.why(element_added_and_subtracted, X, index=2)
    assert found.kinds == ("cancelled",)


def test_an_element_of_a_table():
    table = wg.tensor(np.ones((4, 2)), requires_grad=True)
    with wg.note_lines():
        y = np.sum(table[np.array([0, 2])])  # read
    found = wg.why(y, table, index=(3, 0))
    assert found.kinds == ("unchosen",) and "# read" in found[0].text
    assert not wg.why(y, table, index=(2, 1))


def test_an_index_that_cannot_be():
    with pytest.raises(wg.WengertError, match=r"shape \(3,\)"):
        wg.why(element_masked, X, index=7)
    with pytest.raises(wg.WengertError, match="not one element"):
        wg.why(element_masked, X, index=slice(2))
    with pytest.raises(wg.WengertError, match="for 2 arrays"):
        wg.why(lambda a, b: np.sum(a * b), X, X, argnums=(0, 1), index=0)


def test_a_hook_that_makes_zeros():
    x = wg.tensor(X, requires_grad=True)
    h = x * 2.0
    h.register_hook(lambda g: g * 0.0)
    assert wg.why(np.sum(h), x).kinds == ("hook",)


def test_float32_ends_early():
    found = wg.why(lambda x: np.sum(np.exp(-200.0 * x)), np.ones(2, np.float32))
    assert found.kinds == ("underflow",) and "float32 has a small range" in found[0].message
    assert wg.why(lambda x: np.sum(np.exp(-200.0 * x)), np.ones(2)).symptoms == ("tiny",)


def test_second_order_zero():
    def f(x):
        return np.sum(3.0 * x)

    found = wg.why(wg.grad(f), X)
    assert found.gradient is None and found.kinds == ("unused",)


def test_lines_of_a_forward_derivative():
    def f(x):
        h = np.sqrt(x)  # here
        return np.sum(h)

    found = wg.why(lambda x: wg.jvp(f, (x,), (np.ones(2),))[1], np.array([0.0, 1.0]))
    assert found.kinds == ("operation",) and found[0].line == marked(f)
    assert found[0].node.level == 1


def test_second_order_line():
    def f(x):
        h = np.sin(x)  # here
        return np.sum(h)

    found = wg.why(wg.grad(f), np.zeros(2))
    assert found.kinds == ("flat",) and found[0].line == marked(f)


def test_complex_zero():
    found = wg.why(lambda z: np.sum(np.abs(z)), np.zeros(2, complex))
    assert found.kinds == ("kink",)
