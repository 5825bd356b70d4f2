"""Convolutions and pooling between inaccessible pages; a script of its own (guard_pages.py).

Every array ends, or begins, beside such a page, and memory that is asked for is full of NaN: a
kernel that reads or writes outside is killed, one that reads what it has not written is wrong.
"""

import faulthandler
import sys

import numpy as np

import wengert as wg

from .guard_pages import guarded, without_stack
from .test_kernels_convolution import CASES, convolutions, frame, poolings


def main(slow):
    """Run each case with arrays at both ends of pages."""
    faulthandler.enable()
    without_stack()
    rng = np.random.default_rng(0)
    programs = []
    for name, (x, w, params) in CASES.items():
        if slow or name in ("padded", "each channel", "far"):
            x, w = (rng.normal(size=s).astype(np.float32) for s in (x, w))
            programs += convolutions(x, w, params)
    x = rng.normal(size=(2, 2, 9, 40)).astype(np.float32)
    programs += poolings(x, {**frame(2, 2, (1, 1), 2), "window": (3, 2)})
    programs += poolings(x[:, :, :8], {**frame(2, 3), "window": (2, 2)})  # to the last element
    x, w = x[:, :, :, :9], rng.normal(size=(3, 2, 3, 3)).astype(np.float32)
    programs += convolutions(x, w, {**frame(2, 2), "groups": 1})
    for number, (f, operands) in enumerate(programs):
        print(number, flush=True)
        graph = wg.trace(f)(*[wg.spec(a.shape, a.dtype) for a in operands])
        for at_end in (True, False):
            (found,) = guarded(graph, at_end)(operands, {})
            np.testing.assert_allclose(found, f(*operands), rtol=0, atol=1e-4)


if __name__ == "__main__":
    main(sys.argv[1:] == ["slow"])
