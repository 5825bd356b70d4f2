"""Integrals of samples: values against SciPy, derivatives in both modes against differences.

Every entry of CASES takes samples, places and a step; named tests say what happens where places
coincide, for integers and single precision, in graphs, and what is refused.
"""

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.errors import ArgumentError, ShapeError, TraceError
from wengert.testing import check_grads

ours, theirs = wg.scipy.integrate, scipy.integrate

LENGTHS = {
    "trapezoid": (1, 2, 5),
    "cumulative_trapezoid": (2, 5),
    "simpson": (1, 2, 3, 4, 5, 8),
    "cumulative_simpson": (2, 3, 4, 7),
    "romb": (2, 3, 5, 9),
}
CASES = [(name, n) for name, lengths in LENGTHS.items() for n in lengths]


def samples(rng, n):
    return rng.normal(size=(2, n)), np.cumsum(rng.uniform(0.5, 1.5, size=(2, n)), axis=1)


def calls(name, x):
    yield {}
    yield {"dx": 0.3}
    if name != "romb":
        yield {"x": x}
        yield {"x": x[0]}
    if name.startswith("cumulative"):
        yield {"initial": 0}


def assert_same(got, want, rtol=1e-13):
    assert isinstance(got, wg.Tensor)
    assert got.shape == np.shape(want) and got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol * np.max(np.abs(want)))


@pytest.mark.parametrize(("name", "n"), CASES)
def test_value_and_derivatives(name, n, rng):
    y, x = samples(rng, n)
    mine, scipys = getattr(ours, name), getattr(theirs, name)
    for options in calls(name, x):
        assert_same(mine(wg.tensor(y), **options), scipys(y, **options))
        assert np.array_equal(mine(y, **options), scipys(y, **options))
        by_axis = {k: v.T if np.ndim(v) == 2 else v for k, v in options.items()}
        assert_same(mine(wg.tensor(y.T), **by_axis, axis=0), scipys(y.T, **by_axis, axis=0))
        moved = {k: v for k, v in options.items() if k != "initial"}
        fixed = {k: v for k, v in options.items() if k == "initial"}

        def f(y, *values, mine=mine, names=tuple(moved), fixed=fixed):
            return mine(y, **dict(zip(names, values, strict=True)), **fixed)

        twice = "x" in moved and np.ndim(moved["x"]) == 1 and n < 6
        point = (y[:1] if twice else y, *map(np.asarray, moved.values()))
        check_grads(f, point, order=2 if twice else 1, entries=False)


def test_initial_and_step_of_cumulative_simpson_may_be_arrays(rng):
    y, _ = samples(rng, 5)
    h, start = rng.uniform(0.5, 1.5, size=(2, 1)), rng.normal(size=(2, 1))
    got = ours.cumulative_simpson(wg.tensor(y), dx=h, initial=start)
    assert_same(got, theirs.cumulative_simpson(y, dx=h, initial=start))
    check_grads(
        lambda y, h, s: ours.cumulative_simpson(y, dx=h, initial=s), (y, h, start), entries=False
    )


@pytest.mark.parametrize("n", [4, 5])
def test_coinciding_sample_points(n):
    y, x = np.arange(1.0, n + 1), np.array([0.0, 1.0, 1.0, 2.0, 2.0])[:n]
    assert_same(ours.simpson(wg.tensor(y), x), theirs.simpson(y, x))
    y_bar, x_bar = wg.grad(lambda y, x: ours.simpson(y, x), argnums=(0, 1))(y, x)
    assert np.all(np.isfinite(y_bar)) and np.all(np.isfinite(x_bar))


def test_complex_integer_and_single_precision_samples(rng):
    z = rng.normal(size=5) + 1j * rng.normal(size=5)
    for name in LENGTHS:
        mine, scipys = getattr(ours, name), getattr(theirs, name)
        for y in (z, np.arange(5), z.real.astype(np.float32)):
            rtol = 1e-6 if y.dtype == np.float32 else 1e-13
            assert_same(mine(wg.tensor(y)), scipys(y), rtol)
        single = z.real.astype(np.float32)
        slope = wg.grad(lambda y, mine=mine: np.sum(mine(y)))
        assert slope(single).dtype == np.float32
        check_grads(mine, (z,), order=1, entries=False)


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid", "simpson"])
def test_gradients_agree_with_complex_steps(name, rng):
    y, x = rng.normal(size=8), np.cumsum(rng.uniform(0.5, 1.5, size=8))
    for n in (7, 8):
        f = lambda m, y: np.sum(np.exp(0.3 * getattr(m, name)(y, x[:n])))  # noqa: E731, B023
        steps = y[:n] + 1e-30j * np.eye(n)
        want = [f(theirs, moved).imag / 1e-30 for moved in steps]
        got = wg.grad(lambda y, f=f: f(ours, y))(y[:n])
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_fixed_quad():
    def integral(a, b, c):
        return ours.fixed_quad(lambda x, c: np.exp(c * x), a, b, args=(c,), n=12)[0]

    want = (np.exp(2.0) - np.exp(-0.5)) / 0.5
    assert abs(integral(-1.0, 4.0, 0.5) - want) < 1e-12
    a_bar, b_bar = wg.grad(integral, argnums=(0, 1))(-1.0, 4.0, 0.5)
    np.testing.assert_allclose([a_bar, b_bar], [-np.exp(-0.5), np.exp(2.0)], rtol=1e-12)
    check_grads(integral, (-1.0, 4.0, 0.5), entries=False)
    assert ours.fixed_quad(np.cos, 0.0, 1.0) == theirs.fixed_quad(np.cos, 0.0, 1.0)
    with pytest.raises(ArgumentError, match=r"finite.*test_integrate\.py"):
        ours.fixed_quad(np.exp, wg.tensor(0.0), np.inf)
    assert ours.newton_cotes(2)[0].tolist() == theirs.newton_cotes(2)[0].tolist()


def test_batching_graphs_and_compiled(rng):
    y, x = samples(rng, 6)
    for name in ("trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson"):
        mine = getattr(ours, name)

        def f(y, x, mine=mine):
            return np.sum(np.sin(mine(y, x=x)))

        slope = wg.grad(f, argnums=(0, 1))
        rows = wg.vmap(slope)(y, x)
        for k in range(2):
            for got, want in zip(rows, slope(y[k], x[k]), strict=True):
                np.testing.assert_allclose(got[k], want, rtol=1e-12)
        for got, want in zip(wg.jit(slope)(y, x), slope(y, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    graph = wg.trace(wg.grad(lambda y: np.sum(ours.cumulative_trapezoid(y))))(wg.spec(("n",)))
    assert (
        graph(y[0]).tolist()
        == wg.grad(lambda y: np.sum(ours.cumulative_trapezoid(y)))(y[0]).tolist()
    )
    with pytest.raises(TraceError, match="number"):
        wg.trace(ours.simpson)(wg.spec(("n",)))


def test_errors(rng):
    y, x = samples(rng, 4)
    t = wg.tensor(y)
    refused = [
        (lambda: ours.simpson(t, x[0, :2]), ShapeError, "length 2 for 4"),
        (lambda: ours.cumulative_trapezoid(t, np.zeros((1, 2, 4))), ShapeError, "one-dimensional"),
        (lambda: ours.cumulative_trapezoid(t, initial=1.0), ArgumentError, "initial=1.0"),
        (lambda: ours.cumulative_simpson(t, x=-x), ArgumentError, "increasing"),
        (lambda: ours.cumulative_simpson(t, dx=np.ones(3)), ShapeError, "dx of shape"),
        (lambda: ours.romb(t), ShapeError, "4 samples"),
        (lambda: ours.romb(t[:, :3], show=True), ArgumentError, "show"),
        (lambda: ours.simpson(t[:, :0]), ShapeError, "0 samples"),
    ]
    for f, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            f()
        assert "test_integrate.py" in str(caught.value)
    with pytest.raises(np.exceptions.AxisError):
        ours.simpson(t, axis=2)
