"""One fault planted for each law, and the law must find it; so must `check_op`.

A checker that has never failed proves nothing.  Each entry of FAULTS is an operation with exactly
one thing wrong, beside the law that is there to see it.  The planted operations are built from the
kinds' classes and never enter the registry; `test_the_sound_twin_passes` runs every law on the same
operations with nothing wrong, so that a law cannot find faults by finding them everywhere.
"""

import numpy as np
import pytest
from scipy import integrate

from wengert._engine.autodiff import eager_passes
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.elementwise import POSITIVE, REAL, Elementwise
from wengert._engine.kinds.linear_map import LinearMap
from wengert._engine.kinds.opaque import Opaque
from wengert._engine.ops.elementwise.exponential import sigmoid
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.elementwise.trigonometric import cos
from wengert.errors import CheckError
from wengert.testing import check_grads, check_op
from wengert.testing.laws.common import LAWS, laws_of

FAULTS = []


def fault(*laws):
    """Enter a function that builds a faulty operation, and the laws that must see it."""

    def enter(build):
        FAULTS.extend(pytest.param(law, build, id=f"{law}-{build.__name__}") for law in laws)
        return build

    return enter


def unary(body, rule=None, **options):
    """An elementwise operation of one operand, not registered."""
    body.__doc__ = options.pop("doc", "Planted.")
    op = Elementwise(body, **options)
    return op if rule is None else op.partials(rule)


def sine(rule=lambda t, out, x: t * cos(x), body=lambda s, x: s.sin(x), **options):
    """The sine, right by default."""
    return unary(body, rule, **{"oracle": "sin(x)", **options})


# ---- values ------------------------------------------------------------------------------------


@fault("value_agrees_with_oracle", "value_keeps_its_digits")
def wrong_body():
    return sine(body=lambda s, x: s.sin(x) * (1.0 + 1e-6))


@fault("value_agrees_with_oracle")
def no_oracle():
    return sine(oracle=None)


@fault("body_agrees_with_ufunc")
def body_is_another_function():
    return sine(body=lambda s, x: s.sin(x) + 1e-6 * x, ufunc=np.sin)


@fault("special_values_agree")
def body_drops_nan():
    def body(s, x, y):
        """The larger one, as C's fmax."""
        return s.where(s.less(y, x), x, y)

    op = Elementwise(body, ufunc=np.maximum, oracle="max(x, y)")
    return op.partials(
        lambda t, out, x, y: where(x > y, t, 0.0), lambda t, out, x, y: where(x > y, 0.0, t)
    )


@fault("value_keeps_its_digits")
def lower_tail_lost():
    """What differences, transposes and every absolute tolerance let through."""
    return unary(
        lambda s, x: 0.5 + 0.5 * s.tanh(0.5 * x),
        lambda t, out, x: t * (sigmoid(x) * sigmoid(-x)),
        oracle="1 / (1 + exp(-x))",
    )


@fault("value_keeps_its_digits")
def digits_lost_near_zero():
    return unary(
        lambda s, x: s.log(1.0 + x),
        lambda t, out, x: t / (1.0 + x),
        oracle="log1p(x)",
        domain=[(-1.0, np.inf)],
    )


@fault("complex_numbers_are_operands")
def real_part_only():
    return sine(body=lambda s, x: s.sin(getattr(x, "real", x)), complex_ok=True)


@fault("memory_does_not_matter")
def reads_memory_and_not_elements():
    def run(x):
        """The sine, of elements that are taken to lie in order."""
        return np.sin(np.ravel(x, "K").reshape(np.shape(x)))

    op = Opaque(run, name="planted", vjp=lambda t, out, x: (t * cos(x),), oracle=np.sin)
    op.make_examples = lambda rng: iter([((rng.normal(size=(2, 3)),), {})])
    return op


# ---- specs and dtypes --------------------------------------------------------------------------


@fault("spec_is_true", "python_numbers_are_weak", "traced_values_agree")
def spec_says_float16():
    op = sine()
    right = Elementwise.infer
    op.infer = lambda specs, params: Spec(right(op, specs, params).shape, np.dtype(np.float16))
    return op


@fault("precision_is_kept")
def value_widens():
    return sine(body=lambda s, x: s.sin(x) * np.float64(1.0))


@fault("empty_arrays_pass")
def empty_arrays_lose_an_axis():
    return sine(body=lambda s, x: s.sin(x) if np.size(x) else np.zeros(0))


# ---- derivatives -------------------------------------------------------------------------------


@fault("derivatives_are_right", "partials_keep_their_digits")
def wrong_partial():
    return sine(lambda t, out, x: t * cos(x) * 1.0001)


@fault("derivatives_are_right", "partials_keep_their_digits")
def wrong_sign():
    return sine(lambda t, out, x: -t * cos(x))


@fault("derivatives_are_right")
def second_derivative_lost():
    """The rule computes with plain numbers: right once, zero afterwards."""
    return sine(lambda t, out, x: t * np.cos(value_of(x)))


@fault("derivatives_are_right")
def second_operand_forgotten():
    def body(s, x, y):
        """x * y."""
        return x * y

    return Elementwise(body, oracle="x * y").partials(lambda t, out, x, y: t * y, None)


@fault("derivatives_are_right")
def wrong_transpose():
    return linear_map(lambda t, x: t)


@fault("partials_keep_their_digits")
def tail_of_partial_lost():
    """1 - tanh(x)**2 is exactly zero from x = 19 on."""
    return unary(lambda s, x: s.tanh(x), lambda t, out, x: t * (1.0 - out * out), oracle="tanh(x)")


@fault("modes_are_transposes", "derivatives_are_right")
def modes_disagree():
    return by_hand(jvp=lambda dots, out, x: 2.0 * dots[0] * cos(x))


@fault("series_agree")
def product_that_is_not_linear():
    def body(s, x, y):
        """x * y * y."""
        return x * y * y

    op = Elementwise(body, oracle="x * y * y").partials(
        lambda t, out, x, y: t * y * y, lambda t, out, x, y: 2.0 * t * x * y
    )
    op.multilinear = True
    return op


@fault("complex_numbers_are_operands")
def not_holomorphic():
    return unary(lambda s, x: s.conj(x), lambda t, out, x: t, oracle="conj(x)", complex_ok=True)


@fault("broadcasting_is_undone")
def wrong_where_broadcast():
    def body(s, x, y):
        """x * y."""
        return x * y

    return Elementwise(body, oracle="x * y", domain=[REAL, POSITIVE]).partials(
        lambda t, out, x, y: t * (y if np.shape(y) == np.shape(t) else 1.0),
        lambda t, out, x, y: t * x,
    )


@fault("python_numbers_are_operands")
def python_numbers_are_something_else():
    def body(s, x, y):
        """x * y."""
        return x * y

    return Elementwise(body, oracle="x * y").partials(
        lambda t, out, x, y: t * (2.0 * y if type(y) is float else y),
        lambda t, out, x, y: t * x,
    )


# ---- manners -----------------------------------------------------------------------------------


@fault("operands_are_not_changed")
def run_writes_to_its_operand():
    def run(x):
        """The sine, in place."""
        return np.sin(x, out=x)

    return by_hand(run=run)


@fault("operands_are_not_changed")
def rule_writes_to_its_operand():
    def rule(t, out, x):
        if isinstance(x, np.ndarray):
            x.flags.writeable = True
            x += 1e-9
        return (t * cos(x),)

    return by_hand(vjp=rule)


@fault("formula_and_documentation_exist")
def no_docstring():
    return sine(doc=None)


@fault("value_agrees_with_oracle", "spec_is_true")
def no_examples():
    op = by_hand()
    op.make_examples = None
    return op


def by_hand(run=None, vjp=None, jvp=None):
    """The sine as an opaque operation."""

    def sine_by_hand(x):
        """The sine."""
        return np.sin(x)

    op = Opaque(
        run or sine_by_hand,
        vjp=vjp or (lambda t, out, x: (t * cos(x),)),
        jvp=jvp or (lambda dots, out, x: dots[0] * cos(x)),
        oracle=lambda x: np.imag(np.exp(1j * np.array(x))),
    )
    op.examples(lambda rng: iter([((rng.normal(size=(4,)),), {})]))
    return op


def linear_map(back=lambda t, x: np.flip(t, 0)):
    """Reversal, as a linear operation."""

    def reverse_rows(x):
        """Rows in reverse order."""
        return x[::-1].copy()

    op = LinearMap(reverse_rows, oracle=lambda x: np.flip(x, 0))
    op.transpose(back)
    op.examples(lambda rng: iter([((rng.normal(size=(3, 2)),), {})]))
    return op


# ---- batches ---------------------------------------------------------------------------


@fault("batching_is_right")
def rule_that_turns_the_rows_too():
    op = linear_map(lambda t, x: np.flip(t, 0))
    op.batch(lambda args, batched, size: op(args[0]))
    return op


# ---- graphs ------------------------------------------------------------------------------------


@fault("traced_derivatives_agree")
def rule_of_graphs_is_another():
    return sine(lambda t, out, x: t * cos(x) * (2.0 if is_traced(x) else 1.0))


@fault("symbolic_sizes_agree")
def rule_of_sizes_is_another():
    return linear_map(lambda t, x: np.flip(t, 0) * (1.0 if type(x.shape[0]) is int else 2.0))


@fault("singular_is_declared", "strong_zeros_agree")
def steep_at_zero_and_silent():
    return unary(
        lambda s, x: s.sqrt(x),
        lambda t, out, x: t / (out + out),
        oracle="sqrt(x)",
        domain=[POSITIVE],
    )


# ---- native code -------------------------------------------------------------------------------


def native_only(s, x):
    """A number that is one, and in native code a little more."""
    return 1.0 + (1e-9 if hasattr(s, "module") else 0.0) + 0.0 * x


@fault("native_values_agree", "native_sizes_agree", "device_values_agree")
def native_body_is_another_function():
    return sine(body=lambda s, x: s.sin(x) * native_only(s, x))


@fault("native_derivatives_agree")
def native_partial_is_another_function():
    factor = unary(native_only, lambda t, out, x: 0.0 * t)
    return sine(lambda t, out, x: t * cos(x) * factor(x))


# ---- the tests ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def registry_is_left_alone():
    before = dict(REGISTRY)
    yield
    assert before == REGISTRY


@pytest.mark.sample(16)
@pytest.mark.parametrize(("law", "build"), FAULTS)
def test_the_law_finds_the_fault(law, build, rng):
    with pytest.raises(CheckError):
        LAWS[law](build(), rng)


@pytest.mark.sample(13)
@pytest.mark.parametrize(
    "build", dict.fromkeys(p.values[1] for p in FAULTS), ids=lambda b: b.__name__
)
def test_check_op_finds_the_fault(build):
    with pytest.raises(CheckError):
        check_op(build())


@pytest.mark.parametrize("build", [sine, by_hand, linear_map], ids=lambda b: b.__name__)
def test_the_sound_twin_passes(build):
    op = build()
    assert check_op(op).laws == laws_of(op)
    assert {"derivatives_are_right", "native_derivatives_agree"} <= set(laws_of(op))


def test_every_law_has_a_fault():
    planted = {p.values[0] for p in FAULTS} | {"dtype_is_kept"}
    assert planted == set(LAWS)


def test_dtype_is_kept_finds_an_engine_that_does_not_cast(monkeypatch, rng):
    """Rules may widen, the engine casts back; without that, the law complains."""
    op = sine(lambda t, out, x: t * np.float64(1.0) * cos(x))
    LAWS["dtype_is_kept"](op, rng)
    monkeypatch.setattr(eager_passes, "project", lambda bar, node: bar)
    with pytest.raises(CheckError, match="float32"):
        LAWS["dtype_is_kept"](op, rng)


def test_check_grads_reads_the_source_of_functions():
    def filled(x):
        out = np.zeros(2)
        out[0] = x * integrate.quad(lambda s: np.exp(-s * x), 0.0, 1.0)[0]
        return out

    check_grads(filled, (0.5,), order=1)
