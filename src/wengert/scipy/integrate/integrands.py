"""Integrands as machine code, and integrals of those that cannot be traced.

    Integrand             what a routine integrates
    InterpretedIntegrand  computes node by node
    CompiledIntegrand     machine code, or a compiled function
    compiled              the compiled integrand of a body; the last ones are kept
    with_sizes            a body with numbers for symbolic sizes
    sampled_integral      the integral and the estimate of its error

An integrand is a body of captured values and one variable.  QUADPACK takes a C function of the
variable and a pointer, `double f(double, void*)`: captured values are stored in one array of
doubles, so parameters may change without a new compilation.  A function that calls Python (another
integral, an operation of SciPy) is called through Python instead, since a C function cannot raise.

Functions that call code for plain numbers only cannot be traced.  Outside of graphs their
subintervals are selected with plain values by the 15-point Gauss-Kronrod rule (A. Kronrod, 1965; C.
Piessens et al., QUADPACK, 1983), and the integral is the weighted sum of the function at their
nodes.  This sum is differentiable with respect to everything that the function depends on, to any
order.  The derivative with respect to a limit is that of a Gauss sum over the empty interval there.
"""

from __future__ import annotations

import ctypes
import heapq
import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.integrate
from scipy import LowLevelCallable

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.graph_classes import Body, evaluated, sizes_from
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert._engine.jit import jit
from wengert._engine.ops.casts import astype
from wengert.errors import ArgumentError, BackendError, OperandError, at, user_line

__all__ = ["sampled_integral"]

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


# Positive Kronrod nodes on [-1, 1], their weights, and the Gauss weights of every other node.
_NODES = (
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144691691137,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
)
_KRONROD = (
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
)
_GAUSS = (
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
)
KRONROD_NODES = 0.5 + 0.5 * np.array([-p for p in _NODES] + [0.0] + list(_NODES[::-1]))
KRONROD_WEIGHTS = 0.5 * np.array([*_KRONROD, 0.209482141084727828012999174891714, *_KRONROD[::-1]])
GAUSS_WEIGHTS = np.zeros(15)
GAUSS_WEIGHTS[1::2] = 0.5 * np.array([*_GAUSS, 0.417959183673469387755102040816327, *_GAUSS[::-1]])
_TOLERANCE_FACTOR = 1e-3  # stricter tolerance, as derivatives are less accurate than the value
_NODES_AT_LIMIT = 5
_LEAST_LIMIT = 120  # subintervals that are allowed in any case


class SampledFunction:
    """A function on [a, b] as a function of u in [0, 1]."""

    def __init__(self, func: Callable[..., Any], a: float, b: float, args: Any) -> None:
        self.func, self.args = func, args
        self.a, self.b = a, b
        self.is_reversed = a > b

    def substitute(self, u: float) -> tuple[list[float], float]:
        """The points x(u), one or two, and the weight dx/du."""
        low, high = (self.b, self.a) if self.is_reversed else (self.a, self.b)
        sign = -1.0 if self.is_reversed else 1.0
        if np.isfinite(low) and np.isfinite(high):
            return [low + (high - low) * u], sign * (high - low)
        distance, scale = (1.0 - u) / u, sign / (u * u)
        if np.isfinite(low):
            return [low + distance], scale
        points = [high - distance] if np.isfinite(high) else [distance, -distance]
        return points, scale

    def evaluate(self, u: float) -> Any:
        """The value at u; a tensor if the function uses tensors."""
        points, scale = self.substitute(u)
        total = self.func(points[0], *self.args)
        for x in points[1:]:
            total = total + self.func(x, *self.args)
        return scale * total

    def evaluate_plain(self, u: float) -> Any:
        """The value at u as plain numbers."""
        value = self.evaluate(u)
        if isinstance(value, Handle):
            value = value_of(value)
        return np.asarray(value)


def _kronrod_sum(f: Callable[[float], Any], low: float, high: float) -> tuple[Any, float]:
    """The Kronrod sum over an interval, and the error estimate from the Gauss sum."""
    values = np.stack([f(low + (high - low) * p) for p in KRONROD_NODES])
    weights = (high - low) * KRONROD_WEIGHTS.reshape(-1, *[1] * (values.ndim - 1))
    inner = (high - low) * GAUSS_WEIGHTS.reshape(-1, *[1] * (values.ndim - 1))
    integral = np.sum(weights * values, axis=0)
    error = float(np.max(np.abs(integral - np.sum(inner * values, axis=0)), initial=0.0))
    deviation = float(np.max(np.sum(weights * np.abs(values - integral / (high - low)), axis=0)))
    if deviation > 0.0 and error > 0.0:  # QUADPACK's estimate
        error = deviation * min(1.0, (200.0 * error / deviation) ** 1.5)
    return integral, error


def _select_intervals(
    f: Callable[[float], Any], breaks: list[float], epsabs: float, epsrel: float, limit: int
) -> tuple[list[tuple[float, float]], float, bool]:
    """Subintervals of [0, 1], the remaining error, and whether it exceeds the tolerance."""
    heap: list[tuple[float, float, float]] = []
    total: Any = 0.0
    sums: dict[float, Any] = {}

    def add(low: float, high: float) -> None:
        nonlocal total
        integral, error = _kronrod_sum(f, low, high)
        sums[low] = integral
        total = total + integral
        heapq.heappush(heap, (-error, low, high))

    for low, high in itertools.pairwise(breaks):
        add(low, high)
    tolerance = 0.0
    while len(heap) < max(limit, _LEAST_LIMIT):
        remaining = -sum(item[0] for item in heap)
        tolerance = max(epsabs, epsrel * float(np.max(np.abs(total), initial=0.0)))
        _, low, high = heap[0]
        middle = 0.5 * (low + high)
        if (
            remaining <= _TOLERANCE_FACTOR * tolerance
            or not low < middle < high
            or high - low < 1e-15
        ):
            break
        heapq.heappop(heap)
        total = total - sums.pop(low)
        add(low, middle)
        add(middle, high)
    remaining = -sum(item[0] for item in heap)
    return sorted((low, high) for _, low, high in heap), remaining, remaining > tolerance


def _limit_term(func: Callable[..., Any], end: Any, args: Any, name: str) -> Any:
    """The integral from the value of a limit to the limit: 0, with nonzero derivatives."""
    here = float(value_of(end))
    if not np.isfinite(here):
        return 0.0
    points, weights = np.polynomial.legendre.leggauss(_NODES_AT_LIMIT)
    step = end - here
    total: Any = 0.0
    for p, w in zip(points, weights, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            value = func(here + step * (0.5 + 0.5 * p), *args)
        if not np.all(np.isfinite(value_of(value))):
            raise OperandError(
                f"{name} with a tensor of value {here} as a limit: the function is not finite "
                f"there, so there is no derivative. Detach the limit{at(user_line())}."
            )
        total = total + 0.5 * w * value
    return step * total


def sampled_integral(
    func: Callable[..., Any], a: Any, b: Any, args: Any, name: str, options: dict[str, Any]
) -> tuple[Any, float]:
    """The integral and the estimate of its error.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, called with plain numbers.
    a, b : float or Tensor
    args : tuple
    name : str
        For messages.
    options : dict
        epsabs, epsrel, limit and points.
    """
    low, high = float(value_of(a)), float(value_of(b))
    integrand = SampledFunction(func, low, high, args)
    if low == high:
        breaks: list[float] = []
    else:
        inner = [(float(p) - low) / (high - low) for p in options["points"] or ()]
        inner = [1.0 - u for u in inner] if integrand.is_reversed else inner
        breaks = [0.0, *sorted(u for u in inner if 0.0 < u < 1.0), 1.0]
    if len(breaks) > 2 and not np.isfinite(low + high):
        raise ArgumentError(f"{name} with points has an infinite limit{at(user_line())}.")
    spans: list[tuple[float, float]] = []
    error, exceeds = 0.0, False
    if breaks:
        spans, error, exceeds = _select_intervals(
            integrand.evaluate_plain, breaks, options["epsabs"], options["epsrel"], options["limit"]
        )
    if exceeds:
        warnings.warn(
            f"{name}: the tolerance is not reached with {len(spans)} subintervals; the estimated "
            f"error is {error:.1e}",
            scipy.integrate.IntegrationWarning,
            stacklevel=3,
        )
    total: Any = 0.0
    for first, last in spans:
        for p, w in zip(KRONROD_NODES, KRONROD_WEIGHTS, strict=True):
            total = total + (last - first) * w * integrand.evaluate(first + (last - first) * p)
    if isinstance(b, Handle):
        total = total + _limit_term(func, b, args, name)
    if isinstance(a, Handle):
        total = total - _limit_term(func, a, args, name)
    return total, error
