"""The normal quantile of kernels, against mpmath; and kernels of normal numbers of a key."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert import random
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.core.op import lookup

mpmath = pytest.importorskip("mpmath")


def on_device(f, *args):
    with emulated_device():
        return wg.device_get(wg.jit(f, backend="cuda")(*args))


def exact(p, start):
    """The quantile, from a number near it, by Newton's method."""
    with mpmath.workdps(40):
        p, x = mpmath.mpf(float(p)), mpmath.mpf(float(start))
        low, sign = (p, 1) if p < 0.5 else (1 - p, -1)
        x = sign * x
        for _ in range(4):
            density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
            x -= (mpmath.erfc(-x / mpmath.sqrt(2)) / 2 - low) / density
        return sign * x


def test_relative_errors():
    rng = np.random.default_rng(0)
    edges = np.array([0.1, 0.9, 0.0999999, 5e-324, 1e-300, 0.5 + 1e-14, 1.0 - 2.0**-53])
    tails = [np.exp(-(t**2) / 2.0) for t in (2.2, 4.0, 4.01, 7.0, 6.99, 14.0, 38.0)]
    p = np.concatenate([rng.uniform(size=80), 10.0 ** -rng.uniform(0.0, 300.0, 60), edges, tails])
    found = on_device(wg.scipy.special.ndtri, p)
    for x, y in zip(p, found, strict=True):
        right = exact(x, y)
        assert abs((float(y) - right) / right) < 3.0 * 2.0**-52, x


def test_beyond_the_domain():
    p = np.array([0.5, 0.0, 1.0, -0.5, 1.5, np.nan])
    found = on_device(wg.scipy.special.ndtri, p)
    assert np.array_equal(found, [0.0, -np.inf, np.inf, np.nan, np.nan, np.nan], equal_nan=True)
    single = on_device(wg.scipy.special.ndtri, np.float32([0.1, 0.7]))
    assert single.dtype == np.float32
    assert np.allclose(single, wg.scipy.special.ndtri(np.float32([0.1, 0.7])), rtol=2e-7)


def test_normal_numbers_of_a_key_are_a_kernel():
    f = lambda key: random.normal(key, (1000,))  # noqa: E731
    key = np.array([3, 5], np.uint64)
    program = DeviceProgram(wg.trace(f)(key).simplify(), EmulatedDevice())
    calls = [s.node.op.name for s, number in program.stages if number < 0]
    assert calls == ["random_tail"]
    assert np.array_equal(on_device(f, key), f(key))


def test_arrays_of_a_device_are_not_computed_by_its_library():
    """Its library may compute elements in another way; without a kernel, the host does."""
    with emulated_device(), pytest.raises(TypeError):
        lookup("normal_of_tail").run(wg.device_put(np.array([0.1, 0.2])))


def test_a_function_that_a_device_lacks_leaves_others_in_kernels():
    """The gamma quantile of t numbers is computed by the host, the normal quantile by a kernel."""
    both = lambda key: (random.t(key, 3.0, (50,)), random.normal(key, (50,)))  # noqa: E731
    key = np.array([3, 5], np.uint64)
    program = DeviceProgram(wg.trace(both)(key).simplify(), EmulatedDevice())
    calls = {s.node.op.name for s, number in program.stages if number < 0}
    assert calls == {"random_tail", "random_split", "special.log_gamma_of_tail"}
    assert np.array_equal(on_device(both, key)[1], random.normal(key, (50,)))
