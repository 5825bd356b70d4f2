"""Random programs: every way to the derivative gives the same one.

The plain pass has its innermost steps inlined; the general one is the meaning.  A program is
a random list of operations on a few arrays of shapes that broadcast; the value must be NumPy's to
the bit, and plain reverse, recorded reverse, guarded reverse, forward, and the checkpointed program
must agree.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from wengert._engine.autodiff.reverse import _run_pass
from wengert._engine.autodiff.tape import fresh, tape_between
from wengert._engine.core.handle import wrap
from wengert._engine.core.op import RuleContext

SHAPES = [(), (1,), (3,), (2, 1), (2, 3)]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.hypot, np.arctan2, np.logaddexp]
UNARY = [np.sin, np.tanh, np.exp, np.square, np.negative, np.absolute, np.arctan]
step = st.tuples(
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from(["b", "u", "n", "i", "r"]),
    st.integers(0, 6),
)


def run(program, xs):
    values = list(xs)
    for i, j, kind, which in program:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == "b":
            new = BINARY[which](a, b)
        elif kind == "u":
            new = UNARY[which](np.tanh(a))
        elif kind == "n":
            new = np.tanh(a) * (0.5 + which) - 1.0
        elif kind == "i":
            new = a[..., None] * 0.5 if a.ndim < 2 else a[..., 0]
        else:
            new = np.sum(np.tanh(a), axis=-1) if a.ndim else a * 1.0
        if new.shape in SHAPES:
            values.append(new)
    return sum(np.sum(np.tanh(v)) for v in values[len(xs) :]) + 0.0 * np.sum(xs[0])


def arrays(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in SHAPES]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@given(st.lists(step, min_size=1, max_size=25), st.integers(0, 10_000))
def test_all_ways_to_the_derivative_agree(program, seed):
    xs = arrays(seed)
    f = lambda *xs: run(program, xs)  # noqa: E731
    numbers = tuple(range(len(xs)))
    value, bars = wg.value_and_grad(f, argnums=numbers)(*xs)
    assert value == f(*xs)

    variables = [fresh(x) for x in xs]
    out = f(*[wrap(v) for v in variables])
    tape = tape_between([out.node], set(variables))
    for recorded, guarded in [(False, True), (True, False), (True, True)]:
        seed_bar = {out.node: np.float64(1.0)}
        done = _run_pass(tape, seed_bar, set(variables), RuleContext(None, recorded, guarded))
        for v, bar in zip(variables, bars, strict=True):
            got = done.get(v, 0.0)
            close(got.numpy() if recorded and v in done else got, bar)

    rng = np.random.default_rng(seed)
    dots = [rng.normal(size=x.shape) for x in xs]
    forward = wg.jvp(f, xs, dots)[1]
    close(forward, sum(np.sum(b * d) for b, d in zip(bars, dots, strict=True)))
    again = wg.grad(wg.checkpoint(f), argnums=numbers)(*xs)
    for a, b in zip(again, bars, strict=True):
        close(a, b)


@given(st.lists(step, min_size=1, max_size=12), st.integers(0, 10_000))
def test_second_derivatives_of_all_nestings_agree(program, seed):
    x = arrays(seed)[2]

    def f(x):
        return run(program, [x, *arrays(seed)[3:]])

    v = np.array([0.3, -1.0, 0.5])
    forward_over_reverse = wg.jvp(wg.grad(f), (x,), (v,))[1]
    close(wg.grad(lambda x: np.sum(wg.grad(f)(x) * v))(x), forward_over_reverse)
    close(wg.grad(lambda x: wg.jvp(f, (x,), (v,))[1])(x), forward_over_reverse)
    close(wg.hessian(f)(x) @ v, forward_over_reverse)
