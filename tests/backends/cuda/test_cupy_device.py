"""The part that calls CuPy, on a stand-in for it: launches match the PTX, errors say what to do."""

import os
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.cuda import cupy_device
from wengert.errors import BackendError

from . import stand_in


@pytest.fixture
def install(monkeypatch):
    """A function that installs a stand-in for CuPy."""
    monkeypatch.setattr(cupy_device, "_DEVICES", {})
    monkeypatch.setitem(sys.modules, "cupyx", stand_in.cupyx())
    stand_in.LAUNCHES.clear()
    return lambda **options: monkeypatch.setitem(sys.modules, "cupy", stand_in.module(**options))


def several(x, a, z, flag, small):
    y = np.where(flag, np.sin(a * x), x)
    return np.sum(y, axis=0), np.abs(y[:3] * z), np.max(y), small * small, x[np.array([0, 2])]


def test_kernels_are_launched_with_the_parameters_of_their_ptx(install):
    install()
    x = np.ones((6000, 3))
    small = np.ones(4, np.float16)
    f = wg.jit(several, backend="cuda")
    for a, z in ((2.0, 1j), (np.float32(2.0), np.complex64(1j)), (3, 2.5)):
        found = f(x, a, z, np.True_, small)
        assert [y.shape for y in found] == [(3,), (3, 3), (), (4,), (2, 3)]
        assert [y.dtype.kind for y in found] == ["f", "f", "f", "f", "f"]
    names, grids, blocks = zip(*stand_in.LAUNCHES, strict=True)
    assert len(set(names)) >= 3
    assert max(g[0] for g in grids) > 1
    assert set(blocks) == {(256,)}


def test_rows_have_shared_memory(install):
    install()
    f = wg.jit(lambda x: wg.scipy.special.softmax(x, axis=1), backend="cuda")
    # A thread for each row, a warp, a block, one that asks for more, one whose rows do not fit.
    for shape, grid, shared in (
        ((5000, 4), 16, 256 * 32),
        ((40, 300), 5, 8 * 2400),
        ((9, 5000), 9, 40000 + 1024),
        ((9, 20000), 9, 160000 + 1024),
        ((9, 100000), 9, 1024),
    ):
        f(np.ones(shape))
        assert stand_in.LAUNCHES[-1][1] == (grid,)
        assert stand_in.SHARED[-1] == shared
    wg.jit(lambda x: np.sum(x), backend="cuda")(np.ones(1 << 20))
    assert stand_in.LAUNCHES[-2][1][0] == 16  # as many parts as blocks
    assert stand_in.LAUNCHES[-1][0].startswith("finish_sum")


def test_no_card(install):
    install(cards=0)
    with pytest.raises(BackendError, match=r"no graphics card.*nvidia-smi.*backend='llvm'"):
        wg.device_put(np.ones(3))


def test_an_old_card(install):
    install(capability=(6, 1))
    with pytest.raises(BackendError, match=r"capability 6\.1.*7\.0"):
        wg.jit(lambda x: x + 1.0, backend="cuda")(np.ones(3))


def test_a_forked_process(install):
    install()
    wg.device_put(np.ones(3))
    (key,) = cupy_device._DEVICES
    cupy_device._DEVICES = {(os.getpid() + 1, key[1]): cupy_device._DEVICES.pop(key)}
    with pytest.raises(BackendError, match=r"forked.*spawn"):
        wg.device_put(np.ones(3))
