"""What the user's side needs of CuPy, on a stand-in: DLPack, cards, streams, memory, fork."""

import os
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.cuda import cupy_device
from wengert._engine.core.device_arrays import DeviceValue
from wengert.errors import BackendError, ConversionError

from . import stand_in


@pytest.fixture(autouse=True)
def card(monkeypatch):
    monkeypatch.setattr(cupy_device, "_DEVICES", {})
    monkeypatch.setitem(sys.modules, "cupyx", stand_in.cupyx())
    monkeypatch.setitem(sys.modules, "cupy", stand_in.module())
    stand_in.LAUNCHES.clear()


double = wg.jit(lambda x: 2.0 * x, backend="cuda")


def test_arrays_of_other_libraries_by_dlpack():
    x = stand_in.Foreign(np.ones(3))
    assert double(x).shape == (3,)
    assert x.streams
    assert set(x.streams) == {stand_in.STREAM}  # the producer is given the current stream
    assert np.array_equal(wg.device_put(x).get(), np.ones(3))
    lowered = double.lower(stand_in.Foreign(np.ones((2, 2), np.float32)))
    assert lowered.graph.inputs[0].spec == wg.spec((2, 2), np.float32)


def test_an_array_of_another_card():
    for x in (stand_in.Foreign(np.ones(3), card=1), stand_in.Array(np.ones(3), card=1)):
        pattern = r"x is an array of graphics card 1, but card 0.*cupy\.cuda\.Device\(1\).*test_cu"
        with pytest.raises(ConversionError, match=pattern):
            double(x)


def test_memory_of_the_card_and_of_the_pool():
    info = wg.memory.device_info()
    assert info == (3 * 10**8, 5 * 10**8, 6 * 10**9 + 2 * 10**8, 8 * 10**9)
    assert info.used <= info.reserved


def test_kernels_are_timed_by_events():
    seen = wg.profile(lambda x: np.sort(np.sin(x)) * 2.0, backend="cuda", repeats=3)(np.ones(9))
    assert len(seen.timing.steps) >= 3
    assert all(np.isclose(step.seconds, 2e-3) for step in seen.timing.steps)


def test_values_are_not_read_in_a_forked_process(monkeypatch):
    w = wg.variable(np.zeros(3), "w")
    step = wg.computation(np.sum(w), updates={w: w + 1.0}, backend="cuda")
    step()
    assert type(w.node.version) is DeviceValue
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    for read in (w.numpy, step, lambda: wg.device_put(np.ones(3))):
        with pytest.raises(BackendError, match=r"forked.*spawn"):
            read()
    monkeypatch.undo()
    assert w.numpy().shape == (3,)
