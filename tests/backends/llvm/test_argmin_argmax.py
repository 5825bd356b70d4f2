"""argmin and argmax in native code: the first of equals, zeros of either sign, NaN, infinities."""

import numpy as np
import pytest

import wengert as wg


def arrays(dtype):
    random = np.random.default_rng(3)
    for k in range(5):
        x = random.integers(-3, 3, (5, 21)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[random.random(x.shape) < 0.2] = (np.nan, -0.0, np.inf, -np.inf, 1.0)[k]
        yield x
        yield x[::-1, ::2]
        yield np.full_like(x, (np.nan, 1, np.inf, 0, -1)[k] if np.dtype(dtype).kind == "f" else 1)


def places(x):
    return [find(x, axis=axis) for find in (np.argmin, np.argmax) for axis in (None, 0, 1)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [float, np.float32, np.int8])
def test_the_first_place(dtype):
    compiled = wg.jit(places)
    for x in arrays(dtype):
        assert all(map(np.array_equal, compiled(x), places(x)))


def test_places_of_what_is_computed():
    compiled = wg.jit(lambda x: places(np.sin(x)))
    for x in arrays(float):
        with np.errstate(invalid="ignore"):
            assert all(map(np.array_equal, compiled(x), places(np.sin(x))))
