"""Results of stencils that are computed where they are used, instead of being stored."""

import numpy as np
import pytest

import wengert as wg


def fluxes(x, c):
    lap = 4.0 * x[1:-1] - (x[:-2] + x[2:]) * c[:-2]
    flux = lap[1:] - lap[:-1]
    flux = np.where(flux * (x[2:-1] - x[1:-2]) > 0, 0, flux)
    return x[2:-2] - c[:-4] * (flux[1:] - flux[:-1])


def fluxes_of_planes(x, c):
    lap = 4.0 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]
    down = lap[1:, 1:-1] - lap[:-1, 1:-1]
    right = lap[1:-1, 1:] - lap[1:-1, :-1]
    down = np.where(down * c[: down.shape[0], : down.shape[1]] > 0, 0, down)
    right = np.where(right * c[: right.shape[0], : right.shape[1]] > 0, 0, right)
    return down[1:] - down[:-1] + right[:, 1:] - right[:, :-1]


def expensive(x, c):
    y = np.exp(x) * c + np.sin(x)
    return y[1:] - y[:-1]


def summed_too(x, c):
    y = 4.0 * x[1:-1] - (x[:-2] + x[2:]) * c[:-2] + x[1:-1] ** 2
    y = y * (y - 1.0)
    return y[1:] * y[:-1] + np.sum(y)


def broadcast(x, c):
    y = 3.0 * x[1:] - x[:-1] * c[:-1] + x[:-1] ** 2 - 0.5 * x[1:] * x[:-1]
    y = y * (y - 1.0)
    return y[1:, None] - y[:-1][None] * c[0]


def returned(x, c):
    y = 4.0 * x[1:-1] - (x[:-2] + x[2:]) * c[:-2] + x[1:-1] ** 2
    return y, y[1:] - y[:-1]


def in_a_loop(x, c):
    for _ in range(12):
        y = 3.0 * x[1:] - x[:-1] * c[:-1] - 2.0 * c[1:] + 0.5 * c[:-1]
        y = y * (0.5 - y)
        x[1:-1] = 0.1 * x[1:-1] + 0.01 * np.tanh(y[1:] - y[:-1])
    return x


LINES = [fluxes, expensive, summed_too, returned, in_a_loop]
PLANES = [*LINES, fluxes_of_planes]


def given(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    return [rng.normal(size=shape).astype(dtype) for _ in range(2)]


def compare(program, arrays, tolerance):
    wanted, found = (f(*[a.copy() for a in arrays]) for f in (program, wg.jit(program)))
    pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
    for x, y in pairs:
        assert x.dtype == y.dtype
        np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [6, 7, 19, 64, 1001])
@pytest.mark.parametrize("program", [*LINES, broadcast], ids=lambda p: p.__name__)
def test_lines(program, n, dtype):
    compare(program, given((n,), dtype), 200 * np.finfo(dtype).eps)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(7, 9), (13, 64), (70, 35)])
@pytest.mark.parametrize("program", PLANES, ids=lambda p: p.__name__)
def test_planes(program, shape, dtype):
    compare(program, given(shape, dtype), 1000 * np.finfo(dtype).eps)


def test_elements_that_are_not_finite():
    x, c = given((60, 50), np.float64)
    x[5, 7], x[20, 20], c[30, 3] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        for program in (fluxes, fluxes_of_planes):
            compare(program, (x, c), 1e-13)


@pytest.mark.parametrize(
    ("program", "nests"), [(fluxes, 1), (fluxes_of_planes, 1), (expensive, 2), (returned, 2)]
)
def test_what_is_stored(program, nests):
    loops = wg.jit(program).lower(*[wg.spec((100, 90))] * 2).loops
    assert str(loops).startswith(f"{nests} nest")


@pytest.mark.parametrize("program", [fluxes, fluxes_of_planes], ids=lambda p: p.__name__)
def test_gradients_are_those_of_the_tape(program):
    gradient = wg.grad(lambda x, c: np.sum(np.sin(program(x, c))), argnums=(0, 1))
    x, c = given((23, 31), np.float64)
    for a, b in zip(gradient(x, c), wg.jit(gradient)(x, c), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)
