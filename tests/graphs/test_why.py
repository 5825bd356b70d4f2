"""why: small programs, each with its known cause; and ordinary programs, which have none.

A program marks the line that is to be found with the comment `# here`.
"""

import inspect
import linecache

import numpy as np
import pytest

import wengert as wg


def marked(f):
    """The number of the line of a function that bears the mark."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if "# here" in text)


# ---- no way from y to x ------------------------------------------------------------------------


def unused(x):
    return np.sum(np.ones(3))


def detached(x):
    h = wg.stop_gradient(x)  # here
    return np.sum(h * h)


def detached_tensor(x):
    h = (x * 2.0).detach()  # here
    return np.sum(h * h)


def under_no_grad(x):
    with wg.no_grad():
        h = x * 3.0  # here
    return np.sum(h)


def converted(x):
    h = (x * 2.0).numpy()  # here
    return np.sum(h)


def converted_item(x):
    return x[0].item() * np.ones(3)  # here


def integer_cast(x):
    k = x.astype(int)  # here
    return np.sum(k * 2.0)


def compared(x):
    positive = x > 1.0  # here
    return np.sum(positive * 2.0)


def counted(x):
    best = np.argmax(x)  # here
    return best * 1.0


def floored(x):
    return np.sum(np.floor(x))  # here


def rounded(x):
    return np.sum(np.round(x))  # here


def signs(x):
    return np.sum(np.sign(x))  # here


def condition_only(x):
    return np.sum(np.where(x, 1.0, 2.0))  # here


def branched(x):
    if x[0] > 0.5:  # here
        return np.sum(np.ones(2))
    return np.sum(np.zeros(2))


X = np.array([1.5, 0.5, 2.5])


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (detached, "detached"),
        (detached_tensor, "detached"),
        (under_no_grad, "no_grad"),
        (converted, "converted"),
        (converted_item, "converted"),
        (integer_cast, "discrete"),
        (compared, "discrete"),
        (counted, "discrete"),
        (floored, "discrete"),
        (rounded, "discrete"),
        (signs, "discrete"),
        (condition_only, "condition"),
        (branched, "branch"),
    ],
)
def test_where_the_way_was_lost(f, kind):
    found = wg.why(f, X)
    assert found.gradient is None
    assert (found[0].kind, found[0].symptom) == (kind, "disconnected")
    assert found[0].line == marked(f)
    assert found[0].file == __file__
    assert "# here" in found[0].text and found[0].text in str(found)


def test_an_input_that_is_not_used():
    found = wg.why(unused, X)
    assert found.kinds == ("unused",)
    assert "does not appear" in found[0].message


def test_one_of_two_arguments():
    found = wg.why(lambda a, b: np.sum(a * 2.0), X, X, argnums=(0, 1))
    assert found.kinds == ("unused",)
    assert "[by b]" in found[0].message and "by a (" in found.summary
    assert found.gradient[1] is None
    np.testing.assert_array_equal(found.gradient[0], np.full(3, 2.0))


def test_a_condition_on_the_way_is_not_blamed():
    def f(x):
        h = np.where(x > 1.0, 2.0 * x, x)
        return np.sum(np.floor(h))  # here

    found = wg.why(f, X)
    assert found.kinds == ("discrete",) and found[0].line == marked(f)


def test_only_the_line_that_passes_nothing_is_named():
    def f(x):
        h = x * 2.0
        return np.sum(np.where(h, 1.0, 2.0) * 3.0)  # here

    found = wg.why(f, X)
    assert found.kinds == ("condition",) and found[0].line == marked(f)
    assert found[0].node.op.name == "where"


def test_two_ways_lost():
    def f(x):
        return np.sum(np.floor(x) + wg.stop_gradient(x))

    assert set(wg.why(f, X).kinds) == {"discrete", "detached"}


def test_tensors_and_their_lines():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(np.floor(x))
    found = wg.why(y, x)
    assert found.kinds == ("discrete",) and found[0].line is None
    assert "note_lines" in str(found)
    with wg.note_lines():
        y = np.sum(np.floor(x))  # line
    found = wg.why(y, x)
    assert "# line" in found[0].text and "note_lines" not in str(found)


def test_note_lines_shows_what_no_grad_and_detach_cut_off():
    x = wg.tensor(X, requires_grad=True)
    with wg.note_lines():
        with wg.no_grad():
            a = x * 2.0
        b = x.detach() * 3.0
    assert not a.requires_grad and not b.requires_grad
    assert wg.why(np.sum(a), x).kinds == ("no_grad",)
    assert wg.why(np.sum(b), x).kinds == ("detached",)


def test_note_lines_changes_no_program():
    x = wg.tensor(X, requires_grad=True)
    with wg.note_lines(), wg.no_grad():
        a = (x * 2.0).requires_grad_()
        b = x.detach().requires_grad_()
        x -= 0.5
        assert x.requires_grad and x.is_leaf
    (a * b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), X)
    np.testing.assert_array_equal(b.grad.numpy(), 2.0 * X)
    with pytest.raises(wg.WengertError, match="result of an operation"), wg.note_lines():
        np.floor(x).requires_grad_()


def test_note_lines_is_a_decorator_and_ends():
    @wg.note_lines()
    def f(x):
        return x * 2.0

    x = wg.tensor(X, requires_grad=True)
    assert f(x).node.where.startswith(__file__)
    assert (x * 2.0).node.where is None


def test_released_history():
    x = wg.tensor(X, requires_grad=True)
    h = x * x
    y = np.sum(h)
    y.backward(retain_graph=False)
    assert wg.why(y, x).kinds == ("released",)


def test_another_tensor_of_equal_value():
    x, twin = wg.tensor(X, requires_grad=True), wg.tensor(X, requires_grad=True)
    found = wg.why(np.sum(twin * twin), x)
    assert found.kinds == ("copy", "unused")


def test_the_values_of_x_as_a_constant():
    x, w = (wg.tensor(X, requires_grad=True) for _ in range(2))
    y = np.sum(w * 2.0 * x.detach())
    assert wg.why(y, x).kinds == ("detached", "unused")


def test_x_written_to_after_y():
    x = wg.tensor(X, requires_grad=True)
    h = x * 2.0
    with wg.note_lines():
        y = np.sum(h * h)
        h[0] = 5.0  # write
    found = wg.why(y, h)
    assert found.kinds[0] == "rewritten" and "# write" in found[0].text
    assert not wg.why(y, x)


def test_a_leaf_that_was_stepped_is_the_leaf_it_was():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(x * x)
    with wg.no_grad():
        x -= 0.1
    found = wg.why(y, x)
    assert not found
    np.testing.assert_array_equal(found.gradient, 2 * X)


def test_a_name_given_to_a_new_tensor():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(x * x)
    x = x * 2.0
    assert wg.why(y, x).kinds[0] == "rewritten"


def test_all_leaves():
    a, b = (wg.tensor(X, requires_grad=True) for _ in range(2))
    found = wg.why(np.sum(a * np.maximum(b, 5.0)))
    assert found.kinds == ("unchosen",) and "leaf 1" in found[0].message


def test_a_value_without_history():
    x = wg.tensor(X)
    assert "no tensor that requires" in str(wg.why(np.sum(x)))


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
def test_where_the_cotangent_died(f, kind):
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
    with pytest.raises(wg.WengertError, match="by 2 arrays"):
        wg.why(lambda a, b: np.sum(a * b), X, X, argnums=(0, 1), index=0)


def test_a_hook_that_makes_zeros():
    x = wg.tensor(X, requires_grad=True)
    h = x * 2.0
    h.register_hook(lambda g: g * 0.0)
    assert wg.why(np.sum(h), x).kinds == ("hook",)


def test_float32_ends_early():
    found = wg.why(lambda x: np.sum(np.exp(-200.0 * x)), np.ones(2, np.float32))
    assert found.kinds == ("underflow",) and "float64 reaches further" in found[0].message
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


def test_zero_times_infinity_is_told():
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
    assert found.kinds == ("overflow",) and "float64 reaches further" in found[0].message
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


def test_time():
    def f(x):
        h = np.linalg.inv(x)  # here
        return np.sum(h) * 2.0

    found = wg.why(f, np.eye(120) * 2.0, time=True)
    assert found.kinds == ("time",) and found[0].line == marked(f)


# ---- graphs and traced values ------------------------------------------------------------------


def test_graphs():
    graph = wg.trace(lambda x: np.sum(np.sqrt(x)))(wg.spec("n"))
    assert not wg.why(graph) and "not known" in str(wg.why(graph))
    found = wg.why(graph, np.zeros(2))
    assert found.kinds == ("singular",) and found[0].file == __file__
    assert wg.why(wg.trace(floored)(wg.spec(3))).kinds == ("discrete",)
    assert wg.why(wg.trace(floored)(wg.spec(3)))[0].line == marked(floored)


def test_traced_tensors():
    x, z = wg.input("x", 3), wg.input("z", 3)
    assert not wg.why(np.sum(x * z), x)
    assert wg.why(np.sum(np.floor(x) * z), x).kinds == ("discrete",)
    assert wg.why(np.sum(z), x).kinds == ("unused",)


# ---- errors, and what can be done with findings ------------------------------------------------


def test_an_operation_without_a_rule():
    def f(x):
        return np.sum(no_rule(x))  # here

    found = wg.why(f, X)
    assert (found.kinds, found.symptoms) == (("rule",), ("error",))
    assert found[0].line == marked(f)


no_rule = wg.extend.opaque(lambda x: x * 1.0, name="why_test_without_rule")


def test_an_array_written_to_behind_the_tape():
    data = np.ones(5000)
    x = wg.tensor(2.0, requires_grad=True)
    y = np.sum(data * x)
    data[0] = np.nan
    found = wg.why(y, x)
    assert (found.kinds[0], found.symptoms[0]) == ("mutated", "error")
    assert "Copy it before you change it" in found[0].message


def test_what_has_no_gradient_is_refused():
    with pytest.raises(wg.WengertError, match="ask why\\(f, \\*args\\)"):
        wg.why(wg.tensor(1.0, requires_grad=True), 3.0)
    with pytest.raises(wg.WengertError, match="two tensors"):
        wg.why(3.0, 4.0)


def test_findings_are_a_sequence_and_html():
    found = wg.why(both := lambda x: np.sum(np.floor(x) * wg.stop_gradient(x)), X)
    assert found and len(found) == 2 and list(found) == [found[0], found[1]]
    assert callable(both) and found._repr_html_().startswith("<pre>")
    assert "&lt;" in found._repr_html_()


def test_state_is_left_as_it_was():
    before = wg.core.recording._Pauses.count
    wg.why(masked, X)
    with pytest.raises(ZeroDivisionError):
        wg.why(lambda x: x / (1 // 0), X)
    assert wg.core.recording._Pauses.count == before
    linecache.checkcache()


# ---- no false alarms ---------------------------------------------------------------------------


def regression(w):
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    return np.mean((a @ w - y) ** 2)


def network(w):
    rng = np.random.default_rng(1)
    h = rng.normal(size=(8, 3))
    for _ in range(3):
        h = wg.nn.functional.relu(h @ (np.eye(3) + np.outer(w, w) * 0.1))
    return np.mean(h)


def guarded_entropy(p):
    return np.sum(np.where(p > 0, -p * np.log(np.where(p > 0, p, 1.0)), 0.0))


def unguarded_entropy(p):
    return np.sum(np.where(p > 0, -p * np.log(p), 0.0))


def softmax_loss(x):
    return -wg.nn.functional.log_softmax(x)[0]


def in_place(x):
    h = np.zeros(3, like=x)
    for i in range(3):
        h[i] = x[i] ** 2
    h += 1.0
    return np.sum(np.sqrt(h))


def partly_dead(x):
    return np.sum(np.maximum(x, 1.0)) + np.sum(np.clip(x, 0.0, 1.0))


def masked_scores(x):
    scores = np.where(np.array([True, False, True]), x, -np.inf)
    return np.log(np.sum(np.exp(scores)))


def sorted_values(x):
    return np.sum(np.sort(x) * np.arange(1.0, 4.0))


def linear_algebra(x):
    a = np.outer(x, x) + np.eye(3)
    return np.linalg.slogdet(a)[1] + np.linalg.norm(np.linalg.solve(a, x))


def spectral(x):
    waves = np.exp(2j * np.pi * np.outer(np.arange(3), np.arange(3)) / 3)
    return np.sum(np.abs(waves @ x) ** 4)


@pytest.mark.parametrize(
    "f",
    [
        regression,
        network,
        guarded_entropy,
        unguarded_entropy,
        softmax_loss,
        in_place,
        partly_dead,
        masked_scores,
        sorted_values,
        linear_algebra,
        spectral,
    ],
)
def test_ordinary_programs_have_no_findings(f):
    x = np.array([0.0, 0.3, 0.7]) if "entropy" in f.__name__ else X
    found = wg.why(f, x)
    assert not found, str(found)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found.gradient, wg.grad(f)(x))
    assert not wg.why(f, x.astype(np.float32))


@pytest.mark.parametrize("f", [regression, softmax_loss, in_place, linear_algebra])
def test_second_derivatives_of_ordinary_programs(f):
    direction = np.array([0.3, -0.2, 0.5])
    found = wg.why(lambda x: np.sum(wg.grad(f)(x) * direction), X)
    assert not found, str(found)


def test_complex_programs_have_no_findings():
    def f(z):
        return np.sum(np.abs(np.exp(z) * z) ** 2)

    z = np.array([0.5 + 1.0j, -0.3j])
    found = wg.why(f, z)
    assert not found
    np.testing.assert_allclose(found.gradient, wg.grad(f)(z))


def test_containers():
    params = {"w": X, "b": 0.5}
    found = wg.why(lambda p: np.sum(p["w"] * 2.0 + p["b"]), params)
    assert not found and set(found.gradient) == {"w", "b"}
    found = wg.why(lambda p: np.sum(p["w"] * 2.0), params)
    assert found.kinds == ("unused",) and "['b']" in found[0].message


def test_modules():
    model = wg.nn.Linear(3, 2)
    loss = (model(wg.tensor(X)) ** 2).sum()
    assert not wg.why(loss, model)
    assert not wg.why(loss)
    model.weight.data = 0.0 * model.weight.numpy()
    model.bias.data = np.full(2, -1.0)
    found = wg.why(wg.nn.functional.relu(model(wg.tensor(X))).sum(), model)
    assert found.kinds == ("saturated",) and not found[0].message.startswith("[by")
    found = wg.why((model(wg.tensor(0.0 * X)) ** 2).sum(), model)
    assert found.kinds == ("multiplied",) and found[0].message.startswith("[by x['weight']]")
