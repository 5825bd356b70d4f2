"""Derivatives of branches not taken, in every mixture of modes to the third (slow: fourth) order.

A case is a function of elements and, for each point, the branch that is taken there, in mpmath: the
answer is its derivative (docs/conventions.md, 4.1).  Every mixture of forward and reverse mode is
run eagerly, as a graph that is interpreted, and natively.  What is not chosen has left its domain
or has overflowed, so that its values, slopes or slopes of slopes are infinite or NaN.
"""

import functools
import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import wengert as wg

zero, identity = (lambda t: mp.mpf(0)), (lambda t: t)
logistic = lambda t: 1 / (1 + mp.exp(-t))  # noqa: E731
rise = lambda t: mp.log1p(mp.exp(t))  # noqa: E731
root_of_log = lambda t: mp.exp(mp.sqrt(mp.log1p(t)))  # noqa: E731
inverse = lambda t: 1 / t  # noqa: E731


def softplus(x):
    return np.where(x > 0, x + np.log1p(np.exp(-x)), np.log1p(np.exp(x)))


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def logarithm(x):
    return np.where(x > 0, np.log(x), 0.0)


def nested(x):
    inner = np.where(x < 1, np.arcsin(x), x**-1.0)
    return np.where(x > 0, inner, np.where(x < -1, np.log(-x), np.sqrt(1.0 - 0.0 * x)))


def deep(x):
    near = np.where(x > 1, np.arccosh(x), np.sqrt(1 - x))
    return np.where(x > 0, np.where(x > 2, np.log(x - 2), near), np.tan(x))


def assigned(x):
    y = np.log(x)
    y[x <= 0] = 0.0
    return y


def behind(x):
    return np.exp(np.sqrt(np.where(x > 0, np.log1p(x), 1.0)))


def masked_softmax(x):
    """Of pairs (x, 0, padding), the share of the first: the logistic function of x."""
    rows = np.stack([x, 0.0 * x, np.log(x)], axis=-1)
    mask = np.array([True, True, False])
    return np.where(mask, wg.numpy.softmax(np.where(mask, rows, -np.inf), axis=-1), 0.0)[:, 0]


def padded(x):
    wide = np.pad(x, (0, 1))
    return np.where([True] * len(x) + [False], np.sqrt(wide) / wide, 0.0)[: len(x)]


def contracted(x):
    """A product of matrices that overflows where it is not chosen."""
    return np.where(x < 1, np.einsum("i,i->i", np.exp(x), np.exp(x)), x)


def collected(f):
    """f in a scan's body, as ys; what it carries is of no use."""
    return lambda x: wg.scan(lambda c, a: (c, f(a)), 0.0, x)[1]


def carried(x):
    """f in a scan's carry: the first step is chosen, the second not."""

    def step(c, keep):
        return np.where(keep, c, np.log(c) / np.sqrt(c)), None

    return wg.scan(step, x, np.array([True, True]))[0]


def reset(x):
    """What overflows in one step of a loop is not chosen in the next."""
    return wg.fori_loop(0, 3, lambda i, c: np.where(c > 1e3, 1.0, np.exp(np.exp(c))), x) * 0 + x


def counted(x):
    def step(s):
        return s[0] + 1, np.where(s[1] > 0, np.log(s[1]), s[1] ** 2)

    return wg.vmap(lambda a: wg.while_loop(lambda s: s[0] < 1, step, (0, a))[1])(x)


def branch_of_rows(x):
    return wg.vmap(lambda a: wg.cond(a > 0, np.log, lambda a: a**3, a))(x)


def computed_outside(x):
    """A branch that does not use what has overflowed before the choice."""
    return wg.cond(np.sum(x) > 0, lambda y, x: y, lambda y, x: x * x, np.exp(np.exp(-x)), x)


CASES = {
    "where, log": (logarithm, {-1.0: zero, 0.0: zero, 2.0: mp.log}),
    "where, sqrt": (
        lambda x: np.where(x > 0, np.sqrt(x), 0.0),
        {-1.0: zero, 0.0: zero, 4.0: mp.sqrt},
    ),
    "where, power": (
        lambda x: np.where(x > 0, x**1.5, 0.0),
        {-1.0: zero, 0.0: zero, 4.0: lambda t: t**1.5},
    ),
    "where, quotient": (lambda x: np.where(x != 0, 1 / x, x), {0.0: identity, 2.0: inverse}),
    "where, product": (
        lambda x: np.where(x > 0, np.log(x) * np.sqrt(x) / x, x),
        {-1.0: identity, 0.0: identity},
    ),
    "where, entropy": (
        lambda p: np.where(p > 0, -p * np.log(p), 0.0),
        {0.0: zero, 0.5: lambda t: -t * mp.log(t)},
    ),
    "where, outside": (
        lambda x: np.where(x < 1, np.arcsin(x), 1 / x),
        {0.0: mp.asin, 3.0: inverse},
    ),
    "where, overflow": (
        lambda x: np.where(x < 0, np.exp(x), np.exp(-x)),
        {-800.0: zero, 800.0: zero, -1.0: mp.exp},
    ),
    "where, flat": (
        lambda x: np.where(x > 0, np.exp(-1 / x), 0.0),
        {-1e-3: zero, 0.0: zero, 1.0: lambda t: mp.exp(-1 / t)},
    ),
    "softplus by hand": (softplus, {-800.0: zero, 800.0: identity, 0.5: rise}),
    "sigmoid by hand": (sigmoid, {-800.0: zero, 800.0: zero, 0.5: logistic}),
    "mish by hand": (
        lambda x: x * np.tanh(np.where(x > 20, x, np.log1p(np.exp(x)))),
        {800.0: identity, 0.5: lambda t: t * mp.tanh(rise(t))},
    ),
    "elu by hand": (
        lambda x: np.where(x > 0, x, np.expm1(x)),
        {800.0: identity, -1.0: mp.expm1},
    ),
    "nested": (
        nested,
        {-2.0: lambda t: mp.log(-t), 0.0: lambda t: mp.mpf(1), 0.5: mp.asin, 3.0: inverse},
    ),
    "four deep": (
        deep,
        {-0.5: mp.tan, 0.5: lambda t: mp.sqrt(1 - t), 1.5: mp.acosh, 3.0: lambda t: mp.log(t - 2)},
    ),
    "maximum": (
        lambda x: np.maximum(np.log(x), -3.0),
        {0.0: zero, 0.01: zero, 2.0: mp.log},
    ),
    "minimum": (lambda x: np.minimum(1 / x, 10.0), {0.0: zero, 0.05: zero, 0.5: inverse}),
    "clip inside": (lambda x: np.sqrt(np.clip(x, 0.0, None)), {-1.0: zero, 4.0: mp.sqrt}),
    "clip outside": (
        lambda x: np.clip(np.sqrt(x), 1.0, 3.0),
        {0.0: zero, 4.0: mp.sqrt, 16.0: zero},
    ),
    "root of a maximum": (
        lambda x: np.where(x > 0, np.sqrt(np.maximum(x, 0)) * x, 0.0 * x),
        {0.0: zero, 2.0: lambda t: t**1.5},
    ),
    "relu": (lambda x: np.sqrt(wg.nn.functional.relu(x)), {-1.0: zero, 4.0: mp.sqrt}),
    "abs": (
        lambda x: np.where(x != 0, np.sqrt(np.abs(x)), 0.0),
        {0.0: zero, -4.0: lambda t: mp.sqrt(-t)},
    ),
    "select": (
        lambda x: np.select([x < 0, x < 1], [np.log(-x), np.sqrt(x + 1)], 1 / x),
        {-2.0: lambda t: mp.log(-t), 0.0: lambda t: mp.sqrt(t + 1), 4.0: inverse},
    ),
    "assigned": (assigned, {-1.0: zero, 0.0: zero, 2.0: mp.log}),
    "singular behind": (behind, {-5.0: zero, 0.0: zero, 1.0: root_of_log}),
    "gammaln": (
        lambda x: np.where(x > 0, scipy.special.gammaln(x), 0.0),
        {0.0: zero, -1.0: zero, 1.5: mp.loggamma},
    ),
    "masked softmax": (masked_softmax, {-1.0: logistic, 0.0: logistic, 2.0: logistic}),
    "padded": (padded, {1.0: lambda t: t**-0.5, 4.0: lambda t: t**-0.5}),
    "contracted": (contracted, {800.0: identity, 0.5: lambda t: mp.exp(2 * t)}),
    "vmap": (lambda x: wg.vmap(logarithm)(x), {-1.0: zero, 0.0: zero, 2.0: mp.log}),
    "scan, log": (collected(logarithm), {-1.0: zero, 0.0: zero, 2.0: mp.log}),
    "scan, softplus": (collected(softplus), {-800.0: zero, 800.0: identity, 0.5: rise}),
    "scan, sigmoid": (collected(sigmoid), {-800.0: zero, 800.0: zero, 0.5: logistic}),
    "scan, carried": (carried, {-1.0: identity, 0.0: identity, 2.0: identity}),
    "fori_loop, reset": (reset, {2.0: identity, 3.0: identity}),
    "while_loop": (counted, {-2.0: lambda t: t * t, 0.0: lambda t: t * t, 3.0: mp.log}),
    "cond of rows": (branch_of_rows, {-2.0: lambda t: t**3, 0.0: lambda t: t**3, 2.0: mp.log}),
    "cond, computed outside": (
        computed_outside,
        {-8.0: lambda t: t * t, -9.0: lambda t: t * t},
    ),
    "jit inside": (
        lambda x: np.where(x > 0, wg.jit(np.log)(x), 0.0),
        {-1.0: zero, 0.0: zero, 2.0: mp.log},
    ),
    "checkpoint": (wg.checkpoint(softplus), {-800.0: zero, 800.0: identity, 0.5: rise}),
}


def forward(f):
    return lambda x: wg.jvp(f, (x,), (np.ones(x.shape),))[1]


def reverse(f):
    return wg.grad(lambda x: np.sum(f(x)))


MODES = {"F": forward, "R": reverse}


def derivative(f, way):
    """The derivative of elements, the last letter of `way` being the innermost mode."""
    for mode in reversed(way):
        f = MODES[mode](f)
    return f


def mixtures(*orders):
    return ["".join(way) for n in orders for way in itertools.product("FR", repeat=n)]


THIRD = ["RRR", "FRR", "RFR", "RRF"]  # by which reverse mode is differentiated again
IN_ONE = ["R", "RR", "RF", "FR", "RRR", "FRR"]
NATIVE = ["R", "RF", "RRR"]  # the others are of the same operations


@functools.lru_cache(maxsize=256)
def answer(name, order):
    """By mpmath, from the branches that are taken."""
    with mp.workdps(40):
        taken = CASES[name][1].items()
        return np.array([float(mp.diff(branch, mp.mpf(x), order)) for x, branch in taken])


def require(name, way, found, backend="eager"):
    want = answer(name, len(way))
    scale = np.maximum(np.abs(want), 1.0)
    close = np.all(np.abs(found - want) <= 1e-9 * scale)
    assert close, f"{name}, {way}, {backend}: {found}, and not {want}"


def at(name):
    return np.array(list(CASES[name][1]))


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", CASES)
def test_eager(name):
    f = CASES[name][0]
    with np.errstate(all="ignore"):
        for way in (*mixtures(1, 2), *THIRD):
            require(name, way, derivative(f, way)(at(name)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_graphs(name):
    """Interpreted and native, several derivatives in one graph."""
    f, x = CASES[name][0], at(name)

    def by(ways):
        return lambda x: tuple(derivative(f, way)(x) for way in ways)

    with np.errstate(all="ignore"):
        for way, each in zip(IN_ONE, wg.trace(by(IN_ONE))(x)(x), strict=True):
            require(name, way, each, "interpreted")
        for way, each in zip(NATIVE, wg.jit(by(NATIVE))(x), strict=True):
            require(name, way, each, "native")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_mixture_alone(name):
    """One graph for each mixture up to the fourth order, so that nothing is shared."""
    f, x = CASES[name][0], at(name)
    with np.errstate(all="ignore"):
        for way in mixtures(1, 2, 3, 4):
            if len(way) > 2:
                require(name, way, derivative(f, way)(x))
            require(name, way, wg.trace(derivative(f, way))(x)(x), "interpreted")
            require(name, way, wg.jit(derivative(f, way))(x), "native")


def simplified(f, way, x):
    """The same, every derivative simplified before the next is taken of it."""
    graph = wg.trace(f)(x).simplify()
    for mode in reversed(way):
        graph = wg.trace(MODES[mode](graph))(x).simplify()
    return graph


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", CASES)
def test_simplified_in_between(name):
    f, x = CASES[name][0], at(name)
    with np.errstate(all="ignore"):
        for way in ("FR", "RRR"):
            require(name, way, simplified(f, way, x)(x), "simplified")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_mixture_simplified_in_between(name):
    f, x = CASES[name][0], at(name)
    with np.errstate(all="ignore"):
        for way in mixtures(1, 2, 3):
            require(name, way, simplified(f, way, x)(x), "simplified")
