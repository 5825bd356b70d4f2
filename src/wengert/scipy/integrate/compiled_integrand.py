"""Integrands as machine code, for the routines of SciPy that accept it.

An integrand is a body of captured values and one variable.  QUADPACK takes a C function of the
variable and a pointer, `double f(double, void*)`: captured values are stored in one array of
doubles, so parameters may change without a new compilation.  A function that calls Python (another
integral, an operation of SciPy) is called through Python instead, since a C function cannot raise.

    Integrand          what a routine integrates
    InterpretedIntegrand  computes node by node
    CompiledIntegrand  machine code, or a compiled function
    compiled           the compiled integrand of a body; the last ones are kept
    with_sizes         a body with numbers for symbolic sizes
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import LowLevelCallable

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.graph_classes import Body, evaluated, sizes_from
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.jit import jit
from wengert._engine.ops.casts import astype
from wengert.errors import BackendError

_DOUBLE = np.dtype(float)
_NUMBER = Spec((), _DOUBLE)
_MAX_COMPILED = 256
_MAX_CAPTURED = 4096  # doubles that are copied for each integral by machine code
_EXACT_INTEGERS = 2**53


class Integrand(Protocol):
    """A function of one variable, for given captured values."""

    def number(
        self, consts: Sequence[Any], element: int | None = None, python: bool = False
    ) -> Any:
        """What `scipy.integrate.quad` takes: a function of a number, with a number as its result.

        Parameters
        ----------
        consts : sequence
            The captured values.
        element : int, optional
            Which element of the result, if it is a vector.
        python : bool
            Whether Python must be able to call it.
        """

    def release(self, f: Any) -> None:
        """Return what `number` returned, after the last call."""

    def array(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A Python function of the variable."""

    def batch(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A compiled function of an array whose rows are values of the variable."""


class InterpretedIntegrand:
    """An integrand that is computed node by node."""

    def __init__(self, body: Body) -> None:
        self._body, self._run = body, evaluated(body)

    def array(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A Python function of the variable."""
        values = list(consts)
        return lambda x: self._run([*values, x])[0]

    def batch(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A compiled function of an array whose rows are values of the variable."""
        return compiled(self._body, consts).batch(consts)

    def number(
        self, consts: Sequence[Any], element: int | None = None, python: bool = False
    ) -> Any:
        """A Python function of the variable, with a number as its result."""
        return _number(self.array(consts), element)

    def release(self, f: Any) -> None:
        """Nothing has to be returned."""


def _number(f: Callable[[Any], Any], element: int | None) -> Callable[[float], float]:
    if element is None:
        return lambda x: float(f(x))
    return lambda x: float(f(x)[element])


class CompiledIntegrand:
    """An integrand as machine code; compiled at first use.

    Parameters
    ----------
    body : Body
        Takes the captured values, then the variable.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self._program = jit(lambda *xs: inline_graph(body, xs)[0], source=False)
        axes = (*[None] * (len(body.inputs) - 1), 0)
        self._batch = jit(vmap(lambda *xs: inline_graph(body, xs)[0], axes), source=False)
        self._pointers: dict[bool, Any] = {}
        self._specs = [n.spec for n in body.inputs[:-1]]
        self._count = sum(s.size for s in self._specs)
        are_numbers = all(s.dtype.kind in "biuf" and s.dtype.itemsize <= 8 for s in self._specs)
        self._packable = are_numbers and self._count <= _MAX_CAPTURED
        # Functions with memory for their parameters, which are made once for each nested call.
        self._free: dict[bool, list[_Native]] = {False: [], True: []}
        self._used: dict[int, tuple[_Native, list[_Native]]] = {}
        self._lock = lock()

    def array(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A compiled function of the variable."""
        program, values = self._program, list(consts)
        return lambda x: program(*values, x)

    def batch(self, consts: Sequence[Any]) -> Callable[[Any], Any]:
        """A compiled function of an array whose rows are values of the variable."""
        program, values = self._batch, list(consts)
        return lambda x: program(*values, x)

    def number(
        self, consts: Sequence[Any], element: int | None = None, python: bool = False
    ) -> Any:
        """Machine code with its parameters, or a compiled function that Python calls."""
        pointer = None if python else self._pointer(element is not None)
        if pointer is None:
            return _number(self.array(consts), element)
        free = self._free[element is not None]
        try:
            native = free.pop()
        except IndexError:
            native = _Native(pointer, self._count + 1)
        if not native.set(consts, element):
            free.append(native)
            return _number(self.array(consts), element)
        self._used[id(native.function)] = native, free
        return native.function

    def release(self, f: Any) -> None:
        """Make the memory of the parameters available to the next integral."""
        found = self._used.pop(id(f), None)
        if found is not None:
            native, free = found
            free.append(native)

    def _pointer(self, of_element: bool) -> Any:
        """The C function; None if the integrand calls Python."""
        with self._lock:
            if of_element not in self._pointers:
                self._pointers[of_element] = self._made(of_element) if self._packable else None
            return self._pointers[of_element]

    def _made(self, of_element: bool) -> Any:
        body, specs = self.body, self._specs

        def function(x: Any, *data: Any) -> Any:
            consts = data[1:] if of_element else data
            values = [astype(v, s.dtype) for v, s in zip(consts, specs, strict=True)]
            result = inline_graph(body, [*values, x])[0]
            return result[astype(data[0], np.dtype(np.int64))] if of_element else result

        program = jit(function, source=False, backend="llvm", host_callbacks="forbid")
        arguments = [_NUMBER] * (1 + of_element) + [Spec(s.shape, _DOUBLE) for s in specs]
        try:
            return program.address(*arguments, signature="double(double, void*)")
        except BackendError:  # it calls Python, or its frame does not fit on the stack
            return None


class _Native:
    """A C function with memory for its parameters.

    Parameters
    ----------
    pointer : Pointer
    count : int
        The number of doubles.
    """

    def __init__(self, pointer: Any, count: int) -> None:
        self._data = np.zeros(count)
        self.function = LowLevelCallable(pointer.function, ctypes.c_void_p(self._data.ctypes.data))

    def set(self, consts: Sequence[Any], element: int | None) -> bool:
        """Store the captured values, one after another; whether none of them is rounded."""
        data, k = self._data, 0
        if element is not None:
            data[0], k = element, 1
        for x in consts:
            if type(x) is not np.float64 and type(x) is not float:
                x = np.ravel(x)
                if x.dtype.kind in "iu" and np.any(np.abs(x.astype(float)) >= _EXACT_INTEGERS):
                    return False
                data[k : k + x.size] = x
                k += x.size
            else:
                data[k] = x
                k += 1
        return True


def with_sizes(body: Body, captured: Sequence[Any]) -> Body:
    """The body with numbers for symbolic sizes."""
    if not body.size_names:
        return body
    variable = body.inputs[-1].spec
    known = sizes_from(body, [*captured, np.zeros(variable.shape)])
    return body.at_sizes(known)


_lock = lock()
_compiled: OrderedDict[Body, CompiledIntegrand] = OrderedDict()


def compiled(body: Body, captured: Sequence[Any]) -> CompiledIntegrand:
    """The compiled integrand of a body, for the sizes of some captured values."""
    body = with_sizes(body, captured)
    with _lock:
        found = _compiled.get(body)
        if found is None:
            found = _compiled[body] = CompiledIntegrand(body)
        _compiled.move_to_end(body)
        while len(_compiled) > _MAX_COMPILED:
            _compiled.popitem(last=False)
        return found
