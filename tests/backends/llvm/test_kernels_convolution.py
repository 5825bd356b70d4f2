"""Native convolution and pooling: what NumPy gives, on one thread and on two, at every stride.

In the default run a few cases, chosen so that each way through the kernels is taken; the product of
random ones, and memory between pages without access, are `make test-all`'s.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert._engine.ops.neural import convolution as c
from wengert._engine.ops.neural import pooling as p

ROOT = Path(__file__).parents[3]


def convolutions(x, w, params):
    """The three operations on operands that fit, as functions of two arrays."""
    y = c.convolution(x, w, **params)
    t = np.cos(np.arange(y.size, dtype=x.dtype)).reshape(y.shape)
    size, kernel = x.shape[2:], w.shape[2:]
    return [
        (lambda x, w: c.convolution(x, w, **params), (x, w)),
        (lambda t, w: c.convolution_input(t, w, size=size, **params), (t, w)),
        (lambda x, t: c.convolution_weight(x, t, kernel=kernel, **params), (x, t)),
    ]


def poolings(x, params):
    """The operations on windows, as functions of arrays."""
    sums = {k: v for k, v in params.items() if k != "dilation"}
    y, z = p.max_pool(x, **params), p.sum_pool(x, **sums)
    t, u = (np.cos(np.arange(a.size, dtype=x.dtype)).reshape(a.shape) for a in (y, z))
    v = np.sin(np.arange(x.size, dtype=x.dtype)).reshape(x.shape)
    size = x.shape[2:]
    return [
        (lambda x: p.max_pool(x, **params), (x,)),
        (lambda v, x: p.max_pool_tangent(v, x, **params), (v, x)),
        (lambda t, x: p.max_pool_adjoint(t, x, **params), (t, x)),
        (lambda v: p.sum_pool(v, **sums), (v,)),
        (lambda u: p.sum_pool_adjoint(u, size=size, **sums), (u,)),
    ]


def agree(functions, threads=1):
    for f, operands in functions:
        wide = [x.astype(float) for x in operands]
        expected, found = f(*wide), wg.jit(f, threads=threads, host_callbacks="forbid")(*operands)
        assert found.dtype == operands[0].dtype
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
        eps = np.finfo(found.dtype).eps
        np.testing.assert_allclose(found, expected, rtol=0, atol=200 * eps * scale)


def frame(axes, stride=1, padding=(0, 0), dilation=1):
    return {
        "stride": (stride,) * axes, "padding": (padding,) * axes, "dilation": (dilation,) * axes,
    }  # fmt: skip


CASES = {
    "padded": ((2, 3, 9, 11), (4, 3, 3, 3), {**frame(2, 1, (1, 1)), "groups": 1}),
    "cropped": ((2, 3, 9, 11), (4, 3, 3, 3), {**frame(2, 1, (1, -2)), "groups": 1}),
    "one by one": ((2, 5, 6, 7), (4, 5, 1, 1), {**frame(2), "groups": 1}),
    "each channel": ((2, 3, 9, 40), (6, 1, 3, 3), {**frame(2, 2, (1, 0), 2), "groups": 3}),
    "each channel, neighbors": ((2, 3, 9, 40), (6, 1, 3, 2), {**frame(2, 1, (4, 1)), "groups": 3}),
    "each channel, dilated": ((2, 2, 30), (2, 1, 4), {**frame(1, 1, (-3, 7), 2), "groups": 2}),
    "one channel of space": ((2, 1, 5, 6, 7), (3, 1, 2, 1, 3), {**frame(3), "groups": 1}),
    "long": ((1, 2, 1300), (3, 2, 60), {**frame(1, 1, (2, -3)), "groups": 1}),
    "far": ((2, 4, 23), (2, 2, 2), {**frame(1, 5), "groups": 2}),
    "space": ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), {**frame(3, 2, (1, 1)), "groups": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_numpys(rng, name):
    x, w, params = CASES[name]
    dtype = np.float32 if name in ("padded", "each channel") else float
    x, w = (rng.normal(size=s).astype(dtype) for s in (x, w))
    agree(convolutions(x, w, params))


@pytest.mark.parametrize("fill", [None, np.nan, -np.inf])
def test_poolings_are_numpys(rng, fill):
    x = np.round(2 * rng.normal(size=(2, 2, 9, 40))).astype(np.float32)
    if fill is not None:
        x[rng.random(x.shape) < 0.8] = fill
    agree(poolings(x, {**frame(2, 2, (1, 1), 2), "window": (3, 2)}))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_ones_are_numpys(rng, seed):
    pick = random.Random(seed)
    for _ in range(12):
        x, w, params, windows = drawn(rng, pick)
        for threads in (1, 2):
            agree(convolutions(x, w, params), threads)
        agree(poolings(x, windows))


def drawn(rng, pick):
    """Operands and parameters of a convolution, and those of a pooling."""
    axes = pick.choice([1, 2, 2, 3])
    groups = pick.choice([1, 1, 2, 3])
    inputs, outputs = pick.choice([(1, 1), (1, 2), (2, 7), (5, 1)])
    lengths = [pick.choice([7, 17, 33] if axes < 3 else [7, 9]) for _ in range(axes)]
    if axes == 1 and pick.random() < 0.5:
        lengths = [pick.choice([600, 1500, 5000])]
    params = {
        "stride": tuple(pick.choice([1, 1, 2, 3, 5]) for _ in lengths),
        "padding": tuple((pick.choice([0, 1, 2]), pick.choice([0, 2, -1])) for _ in lengths),
        "dilation": tuple(pick.choice([1, 1, 2]) for _ in lengths),
        "groups": groups,
    }
    dtype = pick.choice([np.float32, np.float64])
    x = rng.normal(size=(pick.choice([1, 2, 5]), groups * inputs, *lengths)).astype(dtype)
    kernel = [pick.choice([1, 2, 3]) for _ in lengths]
    w = rng.normal(size=(groups * outputs, inputs, *kernel)).astype(dtype)
    window = tuple(pick.choice([1, 2, 3, 6 if axes < 3 else 2]) for _ in lengths)
    windows = {
        "window": window,
        "stride": tuple(pick.choice([1, 2, 3, 4]) for _ in lengths),
        "padding": tuple((pick.randrange(k // 2 + 1), pick.randrange(k // 2 + 1)) for k in window),
        "dilation": (1,) * axes,
    }
    return x, w, params, windows


@pytest.mark.slow
def test_large_ones_are_numpys_on_two_threads(rng):
    for x, w, params in (
        ((9, 16, 30, 30), (24, 16, 3, 3), {**frame(2, 1, (1, 1)), "groups": 1}),
        ((9, 64, 30, 30), (64, 1, 3, 3), {**frame(2, 2, (1, 1)), "groups": 64}),
        ((8, 5, 20000), (8, 5, 9), {**frame(1, 1, (4, 4)), "groups": 1}),
    ):
        x, w = (rng.normal(size=s).astype(np.float32) for s in (x, w))
        agree(convolutions(x, w, params), threads=2)


def test_nothing_is_touched_outside():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "WENGERT_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.llvm.guard_pages_convolutions"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-300:]}\n{done.stderr[-3000:]}"
