"""Random programs give the same values and gradients before and after every pass.

A program is a list of steps, each an operation on values that earlier steps made; it runs on arrays
and traces.  Operands hold zeros of both signs, infinities and NaN as well.
"""

import functools

import numpy as np
import pytest
from wengert.rewrite import DEFAULT, Passes, simplify

import wengert as wg

UNARY = (
    np.sin, np.exp, np.tanh, np.negative, np.absolute, np.square, np.sqrt, np.sign,
    lambda x: x * 1.0, lambda x: x + 0.0, lambda x: x - 0.0, lambda x: x * 0.0, lambda x: x / 4.0,
    lambda x: np.negative(-x), lambda x: x**2, lambda x: x**1, lambda x: abs(abs(x)),
    lambda x: x - x,
    lambda x: np.log(1 + x), lambda x: np.exp(x) - 1, lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.log(np.exp(x)), lambda x: x * np.full_like(x, 1.0) + np.full_like(x, 2.0),
    lambda x: x.astype("float32").astype("float64"), lambda x: x.T.T, lambda x: x.T,
    lambda x: np.where(x > 0, x, 0.5 * x), lambda x: np.where(x != 0, np.sin(x) / x, 1.0),
    lambda x: np.exp(x) / np.sum(np.exp(x), axis=0, keepdims=True), lambda x: x[::-1],
    lambda x: np.reshape(np.reshape(x, (9,)), (3, 3)), lambda x: np.transpose(np.exp(x.T) * 2.0),
    lambda x: np.broadcast_to(np.sum(x, axis=0), (3, 3)), lambda x: x[[0, 0, 2]],
    lambda x: np.squeeze(np.expand_dims(x, 1)), lambda x: x - np.max(x, axis=1, keepdims=True),
    lambda x: np.broadcast_to(x[0], (3, 3)) * 2.0, lambda x: np.maximum(x, x), lambda x: x * x,
    lambda x: np.sqrt(np.square(x)), lambda x: np.einsum("ij,kj->ik", x.T, x).T,
    lambda x: np.log(np.sum(np.exp(x), axis=1, keepdims=True)) + x, lambda x: np.cumsum(x, axis=0),
    lambda x: np.mean(np.square(x), axis=0) - np.square(np.mean(x, axis=0)) + x,
)  # fmt: skip
BINARY = (
    np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.matmul,
    lambda x, y: x / (1.0 + y * y), lambda x, y: x - (-y), lambda x, y: x + (-y),
    lambda x, y: -x * -y,
    lambda x, y: np.where(x > y, x, np.where(x > y, y, x + y)), lambda x, y: x.T + y.T,
    lambda x, y: np.where(np.logical_not(x < y), x * y, y), lambda x, y: (x + y) * (y + x),
    lambda x, y: np.sum(x, axis=0) + y, lambda x, y: np.concatenate([x, y])[1:4],
    lambda x, y: np.broadcast_to(x[:1], (3, 3)) * np.broadcast_to(y[:, :1], (3, 3)),
    lambda x, y: np.where(y > 1.0, np.sqrt(x), x), lambda x, y: np.log(np.exp(x) + np.exp(y)),
)  # fmt: skip


def program(seed):
    """A random function of two matrices that gives a number."""
    rng = np.random.default_rng(seed)
    steps = []
    for i in range(int(rng.integers(3, 9))):
        if rng.random() < 0.6:
            steps.append((UNARY[rng.integers(len(UNARY))], (int(rng.integers(i + 2)),)))
        else:
            pair = (int(rng.integers(i + 2)), int(rng.integers(i + 2)))
            steps.append((BINARY[rng.integers(len(BINARY))], pair))

    def run(x, y):
        values = [x, y]
        for op, operands in steps:
            values.append(op(*[values[k] for k in operands]))
        return np.sum(np.tanh(values[-1])) + np.sum(values[-2] * 0.125)

    return run


def operands(seed, special, improves=False):
    rng = np.random.default_rng(seed + 1000)
    x, y = rng.normal(size=(2, 3, 3))
    if special:
        # Where exponentials overflow, what is stable is right and the original not: it is compared
        # with the truth instead (test_accuracy.py).
        odd = [0.0, -0.0, np.nan] if improves else [0.0, -0.0, np.inf, -np.inf, np.nan, 1e200]
        x.flat[rng.integers(9, size=3)] = rng.choice(odd, 3)
        y.flat[rng.integers(9, size=2)] = rng.choice(odd, 2)
    return x, y


EACH = {name: Passes([name]) for name in DEFAULT.names} | {
    "all": DEFAULT,
    "all, one by one": DEFAULT.one_by_one(),
}
FEW, MANY = range(16), range(16, 200)


def compare(got, wanted, improves):
    """The same numbers; where a rule improves on NaN and infinity, where there were numbers."""
    for a, b in zip(got, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        sound = np.isfinite(b) if improves else np.ones(b.shape, bool)
        np.testing.assert_allclose(a[sound], b[sound], rtol=1e-8, atol=1e-8, equal_nan=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("passes", EACH.values(), ids=list(EACH))
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
def test_values_and_gradients_stay(passes, special):
    check_values(passes, special, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("passes", EACH.values(), ids=list(EACH))
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
def test_values_and_gradients_stay_in_many_programs(passes, special):
    check_values(passes, special, MANY)


@functools.cache
def with_graphs(seed, special, improves):
    """Operands, and of the program and of its value and gradients the graphs and what they give."""
    f, (x, y) = program(seed), operands(seed, special, improves)
    with np.errstate(all="ignore"):
        graphs = [wg.trace(g)(x, y) for g in (f, wg.value_and_grad(f, (0, 1)))]
        return (x, y), [(graph, flat(graph(x, y))) for graph in graphs]


def check_values(passes, special, seeds):
    improves = special and "stabilise" in passes.names
    applied = 0
    for seed in seeds:
        args, graphs = with_graphs(seed, special, improves)
        with np.errstate(all="ignore"):
            for before, wanted in graphs:
                text = str(before)
                after = simplify(before, passes)
                assert str(before) == text
                applied += after is not before
                after.verify()
                try:
                    compare(flat(after(*args)), wanted, improves)
                except AssertionError as error:
                    error.add_note(f"seed {seed}\n{before}\n\n{after}")
                    raise
    assert applied or passes.names in (["prune"], ["matrices"], ["loops"], ["messages"])


def flat(values):
    out = []
    for v in values if isinstance(values, tuple) else (values,):
        out += flat(v) if isinstance(v, tuple) else [v]
    return out


@pytest.mark.sample(5)
@pytest.mark.parametrize("passes", EACH.values(), ids=list(EACH))
def test_gradients_of_what_was_simplified(passes):
    check_gradients(passes, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("passes", EACH.values(), ids=list(EACH))
def test_gradients_of_what_was_simplified_in_many_programs(passes):
    check_gradients(passes, MANY)


@functools.cache
def with_gradients(seed):
    """Operands of a program, its graph, and its gradients."""
    f, (x, y) = program(seed), operands(seed, False)
    return (x, y), wg.trace(f)(x, y), wg.grad(f, (0, 1))(x, y)


def check_gradients(passes, seeds):
    for seed in seeds:
        with np.errstate(all="ignore"):
            args, graph, wanted = with_gradients(seed)
            got = wg.grad(simplify(graph, passes), (0, 1))(*args)
        try:
            compare(got, wanted, improves=True)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


def test_symbolic_sizes():
    """The same rules where lengths are not known."""

    def f(x, w):
        shifted = x - np.mean(x, axis=0) * 1.0
        h = np.where(shifted > 0, shifted, 0.1 * shifted) @ w
        return np.sum(np.log(np.sum(np.exp(h.T), axis=0))) / x.shape[0] + np.sum(np.ones_like(x))

    x, w = np.random.default_rng(0).normal(size=(5, 3)), np.eye(3, 4)
    for function in (f, wg.grad(f, (0, 1))):
        before = wg.trace(function)(wg.spec(("n", 3)), wg.spec((3, "m")))
        after = simplify(before)
        assert len(after) < len(before)
        after.verify()
        compare(flat(after(x, w)), flat(before(x, w)), False)
        compare(flat(after(x[:2], w)), flat(before(x[:2], w)), False)
