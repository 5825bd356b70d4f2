"""Gradients of functions that contain the first use of a communicator in the process."""

import sys

import numpy as np

import wengert as wg
from wengert import distributed


def loss(w):
    w = distributed.replicated(w)
    return distributed.allreduce(np.sum((w - 1.0) ** 2))


gradient = wg.grad(loss)
if sys.argv[1] == "compiled":
    gradient = wg.jit(gradient)
for _ in range(2):
    np.testing.assert_array_equal(gradient(np.zeros(2)), -2.0 * distributed.world().size)
print("equal", flush=True)
