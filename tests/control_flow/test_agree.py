"""Programs with loops: all ways to run and to derive them give the same.

    eager steps, where every operation of every step is on the tape: the reference
    the graph, interpreted; the same simplified; native code

Values, gradients, tangents, second derivatives in all four mixtures of modes, batches.
"""

import numpy as np
import pytest

import wengert as wg

from .programs import PROGRAMS

WAYS = {
    "graph": lambda f: lambda *args: wg.trace(f)(*args)(*args),
    "simplified": lambda f: lambda *args: wg.rewrite.simplify(wg.trace(f)(*args))(*args),
    "native": wg.jit,
}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def directions(args):
    rng = np.random.default_rng(1)
    return tuple([rng.normal(size=np.shape(a))[()] for a in args])


def numbers(args):
    return tuple(range(len(args)))


def slope(f, along):
    return lambda *args: wg.jvp(f, args, along)[1]


def gradient(f, args):
    return wg.grad(f, numbers(args))


def along_gradient(f, args, along):
    def g(*now):
        bars = gradient(f, args)(*now)
        return sum(np.sum(a * b) for a, b in zip(bars, along, strict=True))

    return g


def agree(found, wanted, rtol=1e-9):
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol, rtol * scale)


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]


def first_order(program):
    """Value, gradient and tangent in one function of all operands."""
    count, along = len(program.args), directions(program.args)

    def of(*all):
        def f(*args):
            return program.f(*args, *all[count:])

        args = all[:count]
        return program.f(*all), *gradient(f, args)(*args), slope(f, along)(*args)

    return of


def second_order(program, every=True):
    """Second derivatives along a direction, by four mixtures of modes; three are one vector.

    Without `every`, reverse over reverse and forward over forward mode.
    """
    count, along = len(program.args), directions(program.args)

    def of(*all):
        def f(*args):
            return program.f(*args, *all[count:])

        args = all[:count]
        back = gradient(along_gradient(f, args, along), args)(*args)
        straight = slope(slope(f, along), along)(*args)
        if not every:
            return *back, straight
        mixed = gradient(slope(f, along), args)(*args)
        _, forward = wg.jvp(gradient(f, args), args, along)
        return *back, *mixed, *forward, straight

    return of


@pytest.mark.sample(19)
@pytest.mark.parametrize("way", ["graph", slow("simplified"), "native"])  # native is simplified
def test_values_gradients_and_tangents(program, way):
    f, operands = first_order(program), (*program.args, *program.fixed)
    agree(WAYS[way](f)(*operands), f(*operands))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "way, every",
    [("graph", True), slow("simplified", True), ("native", False), slow("native", True)],
)
def test_second_derivatives(program, way, every):
    f, operands = second_order(program, every), (*program.args, *program.fixed)
    agree(WAYS[way](f)(*operands), f(*operands))


def test_second_derivatives_of_all_mixtures_are_one(program):
    found = second_order(program)(*program.args, *program.fixed)
    count, along = len(program.args), directions(program.args)
    agree(found[count : 2 * count], found[:count])
    agree(found[2 * count : 3 * count], found[:count])
    product = sum(np.sum(a * b) for a, b in zip(found[:count], along, strict=True))
    np.testing.assert_allclose(found[-1], product, 1e-9, 1e-9)


def test_gradients_against_differences(program):
    """Of the graph's own values, so that no derivative is compared with another."""
    along, h = directions(program.args), 1e-5
    graph = wg.trace(program.f)(*program.args, *program.fixed)

    def at(t):
        moved = [a + t * d for a, d in zip(program.args, along, strict=True)]
        return float(graph(*moved, *program.fixed))

    step = (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h)
    bars = wg.jit(gradient(program.of_args, program.args))(*program.args)
    found = float(sum(np.sum(a * b) for a, b in zip(bars, along, strict=True)))
    assert abs(found - step) <= 1e-7 * max(1.0, abs(step))


def rows_alike(program, way):
    args = [np.stack([a, a * 0.9, a * 1.05]) for a in program.args]
    f = program.of_args
    each = [f(*row) for row in zip(*args, strict=True)]
    slopes = [gradient(f, args)(*row) for row in zip(*args, strict=True)]
    wanted = tuple([np.stack(column) for column in zip(*slopes, strict=True)])
    agree(way(wg.vmap(f))(*args), np.stack(each))
    agree(way(wg.vmap(gradient(f, args)))(*args), wanted)
    agree(way(gradient(lambda *args: np.sum(wg.vmap(f)(*args)), args))(*args), wanted)


def test_batches(program):
    """Rows beside each other are what they are alone: values, gradients, and of rows gradients."""
    rows_alike(program, lambda f: f)


@pytest.mark.slow
def test_batches_native(program):
    rows_alike(program, wg.jit)


@pytest.mark.slow
def test_jacobians_and_hessians(program):
    args = program.args

    def scalar(*args):
        return program.of_args(*args)

    def vector(x, *rest):
        return np.stack([scalar(x, *rest), scalar(x * 1.01, *rest)])

    for derive, g in ((wg.jacrev, vector), (wg.jacfwd, vector), (wg.hessian, scalar)):
        wanted = derive(g)(*args)
        agree(wg.trace(derive(g))(*args)(*args), wanted)
        agree(wg.jit(derive(g))(*args), wanted)
