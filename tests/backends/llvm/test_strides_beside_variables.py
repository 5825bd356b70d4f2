"""Inputs with strides beside variables, whichever of them is met first in the graph.

Strides were numbered in the order in which inputs are lowered, and not in their own.
"""

import numpy as np
import pytest

import wengert as wg
from wengert import nn


@pytest.mark.parametrize(
    "calls", [12]
)  # a program for a layout is made when it has been seen often
def test_strides_belong_to_their_inputs(calls, rng):
    table = nn.Parameter(rng.normal(size=(5, 4)))
    first, second = rng.integers(0, 5, (6, 9))[:, ::2], rng.normal(size=(8, 6))[::2].T
    wanted = (table.numpy()[first[:, :4]] * second[:, :, None]).sum()
    f = wg.jit(lambda k, x: np.sum(table[k[:, :4]] * np.expand_dims(x, -1)))
    g = wg.jit(lambda x, k: np.sum(table[k[:, :4]] * np.expand_dims(x, -1)))
    for _ in range(calls):
        assert f(first, second).item() == pytest.approx(wanted)
        assert g(second, first).item() == pytest.approx(wanted)
