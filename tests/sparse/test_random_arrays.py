"""Random programs of arrays with several axes, with indices, axes and shapes as in NumPy.

A program applies steps chosen by chance, each to whatever shape the one before has left; constants
and indices in it are drawn from a generator that begins anew in every run.
"""

import numpy as np
import pytest

import wengert as wg

SHAPES = [(6,), (2, 3), (2, 2, 2)]
LARGE = 40  # elements; more are cut


def written(x, r):
    y = x * 1.0
    y[r.integers(len(x), size=3)] = np.sin(x[r.integers(len(x), size=3)])
    return y


def halves(x):
    y = np.zeros(x.shape) * x
    y[..., ::2] += x[..., ::2]
    return np.matmul(y, np.swapaxes(x, -1, -2)) if x.ndim >= 2 else y


STEPS = [
    lambda x, r, a: np.transpose(x, r.permutation(x.ndim)),
    lambda x, r, a: x.reshape(-1, 2) if x.size % 2 == 0 else x.reshape(-1),
    lambda x, r, a: np.roll(x, int(r.integers(1, 3)), axis=a) * x,
    lambda x, r, a: np.sin(x).sum(axis=a, keepdims=bool(r.integers(2))),
    lambda x, r, a: x[..., None] * x[..., ::-1][..., None, :] if x.ndim < 3 else x * x[::-1],
    lambda x, r, a: np.concatenate([x, np.cos(x)[::-1]], axis=a),
    lambda x, r, a: np.stack([x, x * x], axis=a),
    lambda x, r, a: np.flip(x, a) + x,
    lambda x, r, a: np.cumsum(x, axis=a),
    lambda x, r, a: np.diff(x, axis=a) if x.shape[a] > 1 else x,
    lambda x, r, a: np.tile(x, 2),
    lambda x, r, a: np.repeat(x, 2, axis=a),
    lambda x, r, a: np.where(r.random(x.shape) > 0.5, x, x[::-1] * 2.0),
    lambda x, r, a: np.max(x, axis=a),
    lambda x, r, a: written(x, r),
    lambda x, r, a: np.take_along_axis(x, r.integers(x.shape[a], size=x.shape), a),
    lambda x, r, a: x[r.integers(len(x), size=2)],
    lambda x, r, a: np.tensordot(x, 1.5 * (r.random((x.shape[-1], 3)) > 0.6), axes=([-1], [0])),
    lambda x, r, a: np.einsum("...i,...i->...", x, np.exp(0.1 * x)),
    lambda x, r, a: np.pad(x, 1) * 0.5,
    lambda x, r, a: x * (r.random(x.shape) > 0.4) + r.normal(size=x.shape),
    lambda x, r, a: halves(x),
]


def program(rng):
    seed, count = int(rng.integers(1 << 30)), int(rng.integers(2, 6))

    def f(x):
        r = np.random.Generator(np.random.PCG64(seed))
        for _ in range(count):
            step = STEPS[r.integers(len(STEPS))]
            if x.ndim == 0:
                x = np.stack([x, 2.0 * x])
            if x.size > LARGE:
                x = x[tuple(slice(2) for _ in x.shape)]
            x = step(x, r, int(r.integers(-x.ndim, x.ndim)))
        return x

    return f


def check(rng, seed, values):
    f, x = program(rng), rng.normal(size=SHAPES[seed % 3])
    dense = np.reshape(wg.jacobian(f)(x), (-1, x.size))
    pattern = wg.sparsity(f)(x).toarray()
    assert pattern.shape == dense.shape and not np.any((dense != 0) & ~pattern)
    if values:
        near = 1e-10 * max(1.0, np.abs(dense).max(initial=0.0))
        for mode in ("auto", "rev"):
            found = wg.sparse_jacobian(f, mode=mode)(x).toarray()
            np.testing.assert_allclose(found, dense, rtol=1e-9, atol=near)


@pytest.mark.parametrize("seed", range(12))
def test_patterns(rng, seed):
    check(rng, seed, values=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_values(rng, seed):
    check(rng, seed, values=True)
