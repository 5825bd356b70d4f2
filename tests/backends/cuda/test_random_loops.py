"""Random loops over a batch on an emulated device: values and gradients of eager execution."""

import numpy as np
import pytest
from tests.backends.cuda.random_loops import Loops
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core import pytree


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["values", "gradient", "gradients"])
def test_random_loops(seed, kind):
    program = Loops(seed)
    function = getattr(program, kind)
    run = wg.jit(function, backend="cuda")
    wanted = wg.jit(function, backend="interpret")(*program.args)
    with emulated_device(threads=5, seed=seed):
        got = wg.device_get(run(*program.args))
    for a, b in zip(pytree.flatten(got)[0], pytree.flatten(wanted)[0], strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12), program.__dict__
