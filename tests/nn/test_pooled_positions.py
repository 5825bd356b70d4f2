"""Indices of max pooling: eager, compiled and batched, against brute force."""

import itertools

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F

CASES = {
    "adaptive 1d, even": (F.adaptive_max_pool1d, 3, (2, 3, 12)),
    "adaptive 1d": (F.adaptive_max_pool1d, 3, (2, 3, 8)),
    "adaptive 1d, one sample": (F.adaptive_max_pool1d, 3, (3, 8)),
    "adaptive 1d, more than there are": (F.adaptive_max_pool1d, 7, (1, 2, 5)),
    "adaptive 2d": (F.adaptive_max_pool2d, (3, 2), (2, 3, 4, 5)),
    "adaptive 2d, one kept": (F.adaptive_max_pool2d, (3, None), (1, 2, 4, 5)),
    "adaptive 3d": (F.adaptive_max_pool3d, (1, 2, 3), (2, 1, 3, 5, 4)),
    "1d": (F.max_pool1d, 3, (2, 3, 8)),
    "2d": (F.max_pool2d, 2, (2, 3, 4, 6)),
    "3d": (F.max_pool3d, 2, (1, 2, 4, 4, 5)),
}


def by_trying(x, size, adaptive):
    axes = x.shape[2:]
    sizes = size if isinstance(size, tuple) else (size,) * len(axes)
    if adaptive:
        many = [n if m is None else m for n, m in zip(axes, sizes, strict=True)]
        spans = [
            [range(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
            for n, m in zip(axes, many, strict=True)
        ]
    else:
        spans = [
            [range(i * w, (i + 1) * w) for i in range(n // w)]
            for n, w in zip(axes, sizes, strict=True)
        ]
    found = np.empty((*x.shape[:2], *map(len, spans)), np.int64)
    for at in np.ndindex(*found.shape):
        window = [s[i] for s, i in zip(spans, at[2:], strict=True)]
        places = list(itertools.product(*window))
        best = max(places, key=lambda place: x[(*at[:2], *place)])
        found[at] = np.ravel_multi_index(best, axes)
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", CASES)
def test_positions_are_the_same_eager_compiled_and_batched(case, rng):
    pool, size, shape = CASES[case]
    x = rng.normal(size=shape)
    f = lambda x: pool(x, size, return_indices=True)  # noqa: E731
    whole = x if len(shape) == pool_axes(pool) + 2 else x[None]
    expected = by_trying(whole, size, "adaptive" in case).reshape(f(x)[1].shape)
    flat = x.reshape(*x.shape[: x.ndim - pool_axes(pool)], -1)
    largest = np.take_along_axis(flat, expected.reshape(*flat.shape[:-1], -1), -1)
    for values, where in (f(x), wg.jit(f)(x), wg.trace(f)(x)(x)):
        assert isinstance(where, np.ndarray) and where.dtype == np.int64
        np.testing.assert_array_equal(where, expected)
        np.testing.assert_array_equal(values, largest.reshape(where.shape))
    _, many = wg.vmap(f)(np.stack([x, x]))
    np.testing.assert_array_equal(many, [expected, expected])


def pool_axes(pool):
    return int(pool.__name__[-2])


@pytest.mark.parametrize("case", ["adaptive 1d", "adaptive 2d", "2d"])
def test_gradients_beside_positions(case, rng):
    pool, size, shape = CASES[case]

    def f(x):
        values, where = pool(x, size, return_indices=True)
        return np.sum(values**2 * (1 + where % 3))

    x = rng.normal(size=shape)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), wg.grad(f)(x), rtol=1e-13)
