"""The first import of wengert.distributed in the process, in a function that is transformed."""

import sys

import numpy as np

import wengert as wg
from wengert.errors import TraceError


def loss(w):
    from wengert import distributed

    return distributed.allreduce(np.sum((w - 1.0) ** 2))


transformed = {
    "eager": wg.grad(loss),
    "compiled": wg.jit(wg.grad(loss)),
    "forward": lambda w: wg.jvp(loss, (w,), (w,)),
    "batch": wg.vmap(loss),
}[sys.argv[1]]
w = np.ones((3, 2)) if sys.argv[1] == "batch" else np.zeros(2)
try:
    transformed(w)
except TraceError as error:
    assert "Import it at the top of the program" in str(error)
    transformed(w)  # now its messages are known
    print("refused", flush=True)
