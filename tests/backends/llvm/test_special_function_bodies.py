"""Families of special functions are native: the values are those of NumPy's formulas.

Each is compared with its own eager run, at ordinary operands and at odd ones; that these are right
is the matter of the laws, which know oracles.  What is written for one element is looked at too:
branches, loops, values that pass from branch to branch, what is left to the interpreter.
"""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.special_functions import scalar_builder
from wengert._engine.core.op import REGISTRY
from wengert.errors import OperandError
from wengert.scipy import special
from wengert.scipy.special import bessel_orders, hypergeometric
from wengert.scipy.special.register import FunctionFamily
from wengert.scipy.special.series_and_quadrature import repeat

assert special
NATIVE = [op for op in REGISTRY.values() if isinstance(op, FunctionFamily) and op.native]
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 1e-8, -1e-8, -2.5, 25.0, 40.0]


def drawn(rng, like, count):
    """Operands of all sizes and signs, and odd ones."""
    if np.asarray(like).dtype.kind in "iu":
        return rng.integers(-2, 9, size=3 * count)
    sizes = np.exp(2.0 * rng.normal(size=count)) * rng.choice([1.0, 1.0, -1.0], count)
    x = np.concatenate([sizes, rng.choice(ODD, count), rng.uniform(0.0, 1.0, count)])
    if np.iscomplexobj(like):
        x = x.astype(complex)
        x.imag = rng.permutation(x.real)
    return x


def agree(op, operands, params):
    """The compiled values are the eager ones, but for rounding that the last digits enlarge."""
    found = wg.jit(lambda *xs: op(*xs, **params))(*operands)
    wanted = op(*operands, **params)
    assert found.dtype == wanted.dtype
    with np.errstate(all="ignore"):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        same |= np.abs(found - wanted) <= 1e-10 * np.abs(wanted)
    # Next to poles and zeros, and in the smaller part of a complex number, rounding is more.
    assert np.mean(same) > 0.98, [(x[~same], found[~same], wanted[~same]) for x in operands]
    assert np.array_equal(np.isnan(found), np.isnan(wanted))


@pytest.mark.sample(17)
@pytest.mark.parametrize("op", NATIVE, ids=lambda op: op.name)
def test_a_member_is_read(op):
    args, params = next(iter(op.make_examples(np.random.default_rng(0))))
    dtypes = [np.result_type(np.asarray(a), np.float64) for a in args]
    assert scalar_builder.is_served(op, params, dtypes)


@pytest.mark.slow
@pytest.mark.parametrize("op", NATIVE, ids=lambda op: op.name)
def test_odd_operands_have_the_values_of_the_eager_run(op):
    rng = np.random.default_rng(1)
    seen = []
    for args, params in op.make_examples(rng):
        if params not in seen:
            seen.append(params)
            agree(op, [drawn(rng, a, 100) for a in args], params)


@pytest.mark.parametrize("name", ["gammainc_order", "jv_order", "wofz_of", "carlson_of"])
def test_some_odd_operands(name):
    op = REGISTRY[f"special.{name}"]
    rng = np.random.default_rng(2)
    args, params = next(iter(op.make_examples(rng)))
    agree(op, [drawn(rng, a, 30) for a in args], params)


def test_float32_is_computed_in_double_precision():
    x, a = np.float32([0.5, 2.0, 3.0]), np.float32([1.5, 2.5, 0.25])
    op = REGISTRY["special.gammainc_order"]
    found = wg.jit(lambda a, x: op(a, x, n=1))(a, x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, op(a, x, n=1))


def test_operands_that_would_take_too_long_raise_the_error_of_the_eager_run():
    compiled = wg.jit(lambda v, x: bessel_orders.jv_order(v, x, n=1))
    v = np.array([1.0, 2e6])
    assert np.isfinite(compiled(v[:1], v[:1])).all()
    with pytest.raises(OperandError, match="too large"):
        compiled(v, v)
    compiled = wg.jit(lambda a, b, x: hypergeometric.hyperu_orders(a, b, x, j=1, k=0, m=0))
    with pytest.raises(OperandError, match="-5000"):
        compiled(np.array([-6000.0]), np.array([1.5]), np.array([2.0]))


# ---- how text is made --------------------------------------------------------------------------


class Made:
    """What `members` needs of an operation."""

    complex_ok = True

    def __init__(self, values):
        self.name, self.values = f"test.{values.__name__}", values


def native(values, *operands):
    """What the text of a function of elements computes, in a program around it."""
    made = Made(values)
    op = FunctionFamily(values, len(operands), None, complex_ok=True, native=True)
    assert scalar_builder.is_served(made, {}, [x.dtype for x in operands])
    return wg.jit(lambda *xs: op(*xs))(*operands)


X = np.array([-3.0, -0.5, 0.0, 0.5, 2.0, np.nan, np.inf])


def test_branches_write_an_element():
    def values(x):
        out = np.full_like(x, -1.0)
        low, high = x < 0.0, x > 1.0
        if low.any():
            out[low] = np.sqrt(-x[low])
        out[high] = 7.0
        return out + x

    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(native(values, X), values(X))


def test_values_pass_from_one_branch_to_another_under_the_same_condition():
    def values(x):
        below = x < 0.0
        out = np.zeros_like(x)
        out[x > 1.0] = 3.0
        early = np.abs(x[below])  # opened before what has been written is read
        out[below] = early + out[below] - 1.0
        return out

    np.testing.assert_array_equal(native(values, X), values(X))


def test_loops_end_for_each_element():
    def values(x):
        def step(k, total, left):
            return total + left * (k + 1.0), np.floor(0.5 * left)

        start = np.zeros_like(x), np.floor(np.where(np.isfinite(x), np.abs(x), 0.0)) * 1e6
        return repeat(step, start, 100, lambda total, left: left > 0.0)[0]

    np.testing.assert_allclose(native(values, X), values(X), rtol=1e-15)


def test_complex_parts_are_set_one_by_one():
    def values(x, y):
        out = np.empty_like(x, dtype=complex)
        out.real, out.imag = x * 2.0, y
        out[x > 0.0] = 1j
        return out * y

    y = X[::-1].copy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(native(values, X, y), values(X, y))
