"""Calls of exported functions through ctypes, with values as NumPy arrays.

Library    a shared library that `export` has written
sizes_of   the symbolic sizes, from the shapes of values
"""

import ctypes

import numpy as np

from wengert._engine.core.symbolic.constraints import solve
from wengert._engine.core.symbolic.dim import replaced

FILL = 0xA5  # of outputs and of the memory around them


def sizes_of(function, values):
    """The symbolic sizes of a function."""
    pairs = [
        (n, k, name)
        for (name, spec), v in zip(function.inputs, values, strict=True)
        for n, k in zip(spec.shape, np.shape(v), strict=True)
    ]
    return solve(pairs)


class Library:
    """The functions of a shared library."""

    def __init__(self, exported, path=None):
        self.exported = exported
        self.library = ctypes.CDLL(str(path or exported.path))
        self.functions = {f.name: f for f in exported.functions}

    def work(self, name, sizes):
        """The bytes of workspace."""
        needed = getattr(self.library, f"{name}_work")
        needed.restype = ctypes.c_int64
        function = self.functions[name]
        return needed(*[ctypes.c_int64(sizes[n]) for n, _ in function.sizes])

    def status(self, name, inputs, outputs, sizes, work=None):
        """The code that a call returns; `work` is the number of bytes, by default enough."""
        function = self.functions[name]
        count = self.work(name, sizes) if work is None else work
        memory = np.full(max(count, 0) + 128, FILL, np.uint8)
        arguments = [ctypes.c_void_p(a.ctypes.data if a is not None else None) for a in inputs]
        arguments += [ctypes.c_void_p(a.ctypes.data if a is not None else None) for a in outputs]
        arguments += [ctypes.c_int64(sizes[n]) for n, _ in function.sizes]
        arguments += [ctypes.c_void_p(memory.ctypes.data + 8), ctypes.c_int64(count)]
        code = getattr(self.library, name)(*arguments)
        assert np.all(memory[:8] == FILL), "wrote before the workspace"
        assert np.all(memory[8 + max(count, 0) :] == FILL), "wrote behind the workspace"
        return code

    def __call__(self, name, *values):
        """The outputs."""
        function = self.functions[name]
        inputs = [
            np.array(v, spec.dtype, order="C")
            for v, (_, spec) in zip(values, function.inputs, strict=True)
        ]
        sizes = sizes_of(function, inputs)
        outputs = []
        for _, spec in function.outputs:
            shape = [replaced(n, sizes) for n in spec.shape]
            outputs.append(np.empty(shape, spec.dtype))
        copies = [x.copy() for x in inputs]
        code = self.status(name, inputs, outputs, sizes)
        assert code == 0, f"{name} returned {code}"
        for x, copy in zip(inputs, copies, strict=True):
            assert np.array_equal(x, copy, equal_nan=x.dtype.kind in "fc"), "an input was changed"
        return outputs
