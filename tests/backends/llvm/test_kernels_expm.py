"""The exponential of matrices as a kernel, compared with the interpreter's run and with mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import wengert  # noqa: F401 - enters the operations
from wengert._engine.core.op import lookup

from .kernel_driver import agree, run


def check(x, strided=False, tolerance=1e-12):
    wanted = lookup("expm").run(x)
    status, (found,) = run("expm", x, outputs=[wanted], strided=strided)
    assert status == 0
    agree(found, wanted, tolerance)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4"])
def test_expm(dtype):
    rng = np.random.default_rng(0)
    tolerance = 3e-5 if dtype in ("f4", "c8") else 1e-12
    for shape in [(3, 3), (1, 1), (2, 1, 4, 4), (0, 0), (0, 2, 2), (12, 12)]:
        x = rng.normal(size=shape) * 2
        x = x + 1j * rng.normal(size=shape) if dtype.startswith("c") else x
        check(x.astype(dtype), tolerance=tolerance)
        check(x.astype(dtype).mT, strided=True, tolerance=tolerance)


def test_small_and_large_norms():
    rng = np.random.default_rng(1)
    for scale in [0.0, 1e-300, 1e-8, 0.5, 1.3, 1.35, 1.6, 2.6, 2.7, 20.0, 50.0]:
        x = rng.normal(size=(4, 4))
        x *= scale / np.abs(x).sum(0).max()
        status, (found,) = run("expm", x, outputs=[x])
        assert status == 0
        with mpmath.workdps(60):
            exact = mpmath.expm(mpmath.matrix(x.tolist()))
            wanted = np.array(exact.tolist(), dtype=float)
        agree(found, wanted, 1e-13)


def test_what_is_not_finite_is_refused():
    for bad in (np.nan, np.inf):
        x = np.eye(2)
        x[0, 1] = bad
        assert run("expm", x, outputs=[x])[0] == 1
