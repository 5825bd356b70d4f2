"""Kernels of single operations, for eager operations on large arrays (core/device_arrays.py).

    value_of_large      the value of an operation
    cotangents          the contributions of an operation to the cotangents of its operands
    in_recycled_memory  a call of a function whose new arrays are in recycled memory
    kept_with_value     a sum or product of arrays, with the fingerprints of those to be kept
    product_with        a product with an array that is checked to be unchanged
    has_nan             whether an array contains NaN

A kernel is the graph of one operation, or of its vjp rule, compiled for all sizes at its first use:
it reads each operand once, and its results are in recycled memory.  Values are those of compiled
functions, which differ from NumPy's by rounding (docs/conventions.md).  What a kernel does not
serve - other dtypes, broadcast or non-contiguous operands, rules that one pass of NumPy computes -
is left to NumPy: both functions return what the caller then computes by itself.

Elementwise operations take arrays as vectors, so a kernel serves all shapes.  Others have one for
each number of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import (
    COPY_LIMIT,
    Fingerprints,
    LeafOp,
    Node,
    Watched,
    is_changeable,
)
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.core.op import RuleContext
from wengert._engine.core.spec import Spec, unweakened
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.thread_state import lock
from wengert.errors import WengertError

from .llvm.tuning import thresholds
from .registry import backend

if TYPE_CHECKING:
    from wengert._engine.control_flow import closure_conversion
    from wengert._engine.core.graph_classes import Body
    from wengert._engine.core.op import Op
    from wengert._engine.core.types import Array

    from .llvm.abi import array_fingerprint, cpython_layout
    from .llvm.runtime import runtime_library
else:
    closure_conversion = LazyModule("wengert._engine.control_flow.closure_conversion")
    cpython_layout = LazyModule("wengert._engine.backends.llvm.abi.cpython_layout")
    array_fingerprint = LazyModule("wengert._engine.backends.llvm.abi.array_fingerprint")
    runtime_library = LazyModule("wengert._engine.backends.llvm.runtime.runtime_library")

P = ParamSpec("P")
T = TypeVar("T")

_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
_EXACT = 1 << 53  # integers up to it are floating-point numbers
_UNKNOWN: Any = object()  # of a key, and of arguments that an entry was not made for
_lock = lock()
_kernels: dict[Hashable, _Kernel | None] = {}


class _Kernel(NamedTuple):
    """The entry of a compiled graph; the graph lives as long as its program is used."""

    entry: Callable[..., Any]
    body: Body


class _Operands(NamedTuple):
    """Operands as a kernel takes them.

    arguments : arrays in C order, or broadcast to the shape of the result; NumPy scalars.
    ranks : of each the number of axes, 0 for an array of one repeated number.
    dtype : of all.
    """

    arguments: list[Any]
    ranks: tuple[int, ...]
    dtype: np.dtype[Any]


# ---- memory --------------------------------------------------------------------------------------


class _Recycling:
    """What `in_recycled_memory` needs; its first call does not load LLVM, which takes 0.1 s."""

    calls = 0
    set_handler: Callable[[Any], Any] | None = None
    handler: Any = None


def in_recycled_memory(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function; NumPy's arrays that it makes own recycled memory (runtime/allocator.py)."""
    set_handler = _Recycling.set_handler
    if set_handler is None:
        _Recycling.calls += 1
        if _Recycling.calls == 1 or not cpython_layout.is_known():
            return function(*args, **kwargs)
        load_fingerprints()
        _Recycling.handler = runtime_library.handler()
        _Recycling.set_handler = set_handler = runtime_library.set_handler()
    before = set_handler(_Recycling.handler)
    try:
        return function(*args, **kwargs)
    finally:
        set_handler(before)


def load_fingerprints() -> None:
    """Take fingerprints of plain arrays by native code."""
    if cpython_layout.is_known():
        Fingerprints.native = array_fingerprint.fingerprint


# ---- in the same pass ----------------------------------------------------------------------------


def kept_with_value(op: Op, inputs: Sequence[Any], values: Sequence[Any]) -> Any:
    """The value of an operation, and its operands as they are kept, in one pass over memory.

    Returns
    -------
    tuple of (numpy.ndarray, tuple), or None
        Plain arrays among the operands are replaced by `Watched`. None if the value has to be
        computed, and the operands kept, by themselves.
    """
    ufunc, (x, y) = getattr(op, "ufunc", None), values
    if ufunc not in _UFUNCS or not op.is_built_in or type(y) is not np.ndarray:
        return None
    hashed = (_is_watched(inputs[0]), _is_watched(inputs[1]))
    if not any(hashed) or np.geterr()["under"] != "ignore":
        return None
    found = array_fingerprint.computed(ufunc, x, y, hashed)
    if found is None or not found.is_finite:  # NumPy warns
        return None
    pairs = zip(inputs, found.fingerprints, strict=True)
    return found.value, tuple([a if f is None else Watched(a, f) for a, f in pairs])


_UFUNCS = frozenset((np.add, np.subtract, np.multiply))  # those of array_fingerprint.py


def _is_watched(x: Any) -> bool:
    """Whether a plain array among operands is kept as a `Watched`."""
    return type(x) is np.ndarray and x.nbytes > COPY_LIMIT and is_changeable(x)


def product_with(t: Any, factor: Watched) -> Any:
    """``t * factor``, and a check that the factor has not changed; None if it is not computed."""
    array = factor.array
    if not factor.is_native or type(t) is not np.ndarray:
        return None
    found = array_fingerprint.computed(np.multiply, t, array, (False, True))
    if found is None:
        return None
    factor.check(found.fingerprints[1])
    return found.value


def has_nan(x: Any) -> bool | None:
    """Whether a large array contains NaN; None if NumPy is to search it."""
    return None if _Recycling.set_handler is None else array_fingerprint.has_nan(x)


# ---- values --------------------------------------------------------------------------------------


def value_of_large(op: Op, *values: Any, **params: Any) -> Any:
    """The value of an operation: ``op.run``, by native code if there is a kernel for it.

    A value that is not finite is NumPy's, with its warnings or errors (`numpy.errstate`).
    """
    out = None
    errors = np.geterr()
    large = values[0] if isinstance(values[0], np.ndarray) else values[-1]
    if large.size >= thresholds.native_elements and errors["under"] == "ignore":
        out = _value(op, values, params, large)
        silent = all([how == "ignore" for how in errors.values()])
        if out is not None and not (silent or _is_finite(out)):
            out = None
    return op.run(*values, **params) if out is None else out


def _is_finite(x: Any) -> bool:
    """Whether all elements are finite; one pass if their sum is, too."""
    if type(x) is np.ndarray and cpython_layout.is_known():
        found = array_fingerprint.is_finite(x)
        if found is not None:
            return found
    with np.errstate(all="ignore"):
        total = np.add.reduce(x, axis=None)
    return bool(np.isfinite(total) or np.isfinite(x).all())


def _value(op: Op, values: Sequence[Any], params: dict[str, Any], large: Array) -> Any:
    flat = op.kind == "elementwise"
    operands = _operands(values, large.shape, large.dtype, flat)
    if operands is None or (flat and params):
        return None

    def compiled() -> _Kernel | None:
        specs = [_spec(rank, operands.dtype) for rank in operands.ranks]
        return _compiled(lambda *xs: op(*xs, **params), specs)  # type: ignore[operator]

    found = _run(("value", op, _hashable(params)), operands, flat, compiled)
    if found is None:
        return None
    return _shaped(found[0], large.shape) if flat else found[0]


# ---- cotangents ----------------------------------------------------------------------------------


def cotangents(
    op: Op,
    params: dict[str, Any],
    t: Array,
    out: Array,
    values: Sequence[Any],
    wanted: Sequence[bool],
    twice: bool = False,
    sums: Sequence[Any] = (),
) -> list[Any] | None:
    """The cotangents of the wanted operands, added to sums of earlier contributions.

    Parameters
    ----------
    op, params
        The operation and its parameters.
    t, out, values
        The cotangent of the result, the result and the operands.
    wanted : sequence of bool
        For each operand whether its cotangent is wanted.
    twice : bool
        Whether the two operands are the same node, so that its cotangent is a sum.
    sums : sequence of numpy.ndarray or None
        For each result the sum so far. It is not modified.

    Returns
    -------
    list of numpy.ndarray, or None
        New arrays, one for each wanted operand, one in all if `twice`. None if the rule is to be
        run by NumPy.
    """
    flat = op.kind == "elementwise"
    if not (op.native or op.is_built_in) or not (flat or len(values) == 1):
        return None
    least = thresholds.native_elements if op.native else thresholds.native_rule_elements
    if max(out.size, np.size(values[0])) < least:
        return None
    earlier = [s for s in sums if s is not None]
    operands = _operands([t, out, *values, *earlier], out.shape, out.dtype, flat)
    if operands is None:
        return None
    places = tuple([k for k, chosen in enumerate(wanted) if chosen])
    ranks = operands.ranks[2 : 2 + len(values)]
    if not all([ranks[k] for k in places]):
        return None
    fixed: tuple[Any, ...] = (None,) * len(values)
    if op.special_numbers and not all(ranks):
        fixed = tuple(
            [None if rank else unweakened(x) for x, rank in zip(values, ranks, strict=True)]
        )
        if not all([x is None or _is_common_exponent(x) for x in fixed]):
            return None
    having = tuple([s is not None for s in sums]) or (False,) * len(places)

    def pulled(t: Any, out: Any, *rest: Any) -> Any:
        xs = [x if number is None else number for x, number in zip(rest, fixed, strict=False)]
        bars = _rule(op, params, t, out, xs, places, twice)
        more = iter(rest[len(values) :])
        return tuple([next(more) + b if s else b for b, s in zip(bars, having, strict=True)])

    def compiled() -> _Kernel | None:
        full = _spec(max(ranks), operands.dtype)
        specs = [_spec(rank, operands.dtype) for rank in operands.ranks]
        if not flat:
            specs[0] = specs[1] = op.infer([full], params)
        return _compiled(pulled, specs, full)

    key = ("vjp", op, _hashable(params), places, twice, having, fixed)
    found = _run(key, operands, flat, compiled)
    if found is None:
        return None
    return [_shaped(bar, out.shape) for bar in found] if flat else list(found)


def _is_common_exponent(x: Any) -> bool:
    """Whether a number is one of the few for which a rule has kernels of its own."""
    return type(x) in (int, float) and abs(x) <= 4 and 2 * x == int(2 * x)


def _rule(
    op: Op,
    params: dict[str, Any],
    t: Any,
    out: Any,
    xs: Sequence[Any],
    places: Sequence[int],
    twice: bool,
) -> list[Any]:
    """The vjp rule on traced values."""
    nodes = tuple([xs[0].node if twice else x.node if isinstance(x, Handle) else x for x in xs])
    node = Node(op, nodes, params, None, NodeInfo(out.node.spec))
    ctx = RuleContext({nodes[k] for k in places}, recorded=True)
    bars = op.vjp(node, t, out, xs, ctx)
    return [bars[0] + bars[1]] if twice else [bars[k] for k in places]


# ---- kernels -------------------------------------------------------------------------------------


def _spec(rank: int, dtype: np.dtype[Any]) -> Spec:
    return Spec(tuple([dim(f"n{k}") for k in range(rank)]), dtype)


def _operands(
    values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], flat: bool
) -> _Operands | None:
    """Operands for a kernel; None if it does not serve them."""
    if dtype not in _DTYPES:
        return None
    arguments: list[Any] = []
    for x in values:
        x = unweakened(x)
        if type(x) is float or (type(x) is int and abs(x) < _EXACT):
            x = dtype.type(x)
        elif not isinstance(x, np.ndarray | np.generic) or x.dtype != dtype:
            return None
        elif not x.ndim or not (x.flags.c_contiguous or any(x.strides)):
            x = np.asarray(x)[(0,) * x.ndim] if flat else x
        elif not _is_ready(x, shape if flat else None):
            return None
        arguments.append(x)
    ranks = [min(x.ndim, 1) if flat else x.ndim for x in arguments]
    return _Operands(arguments, tuple(ranks), dtype)


def _is_ready(x: Any, shape: tuple[int, ...] | None) -> bool:
    """Whether an array is in C order; with a shape, broadcast or not, it must have that shape."""
    if shape is None:
        return bool(x.flags.c_contiguous)
    return x.shape == shape and (x.flags.c_contiguous or 0 in x.strides)


def _hashable(params: dict[str, Any]) -> Hashable:
    return tuple(sorted(params.items())) if params else ()


def _run(
    what: tuple[Hashable, ...],
    operands: _Operands,
    flat: bool,
    compiled: Callable[[], _Kernel | None],
) -> Any:
    """The results of a kernel, which is compiled at its first use; None if there is none."""
    key = (*what, operands.dtype, operands.ranks)
    kernel = _kernels.get(key, _UNKNOWN)
    if kernel is _UNKNOWN:
        with _lock:
            if key not in _kernels:
                _kernels[key] = compiled()
            kernel = _kernels[key]
    if kernel is None:
        return None
    arguments = operands.arguments
    if flat:  # arrays that are broadcast along some axes are copied
        arguments = [x.reshape(-1) if x.ndim > 1 else x for x in arguments]
    found = kernel.entry(*arguments)
    return None if found is _UNKNOWN else found


def _compiled(
    fun: Callable[..., Any], specs: Sequence[Spec], full: Spec | None = None
) -> _Kernel | None:
    """A kernel; None if NumPy is to be used.

    Parameters
    ----------
    fun : callable
    specs : sequence of Spec
    full : Spec, optional
        Of the results of a rule, which must be worth a kernel.
    """
    try:
        closed = closure_conversion.closed(fun, specs, "a kernel", hoist=False)
    except WengertError:  # the rule decides by values
        return None
    body = closed.body
    if closed.captured:
        return None
    if full is not None and not (
        _saves_passes(body) and all([n.spec == full for n in body.outputs])
    ):
        return None
    native: Any = backend("llvm")
    program = native.compiled(body).program
    if program.calls_special_functions or program.callbacks.nodes:
        return None  # SciPy's functions, or Python's
    entry = native.entry(body, single=False, otherwise=lambda *_: _UNKNOWN)
    return None if entry is None else _Kernel(entry, body)


def _saves_passes(body: Body) -> bool:
    """Whether NumPy would compute a rule in several passes, or by functions that it has slow."""
    ops = [n.op for n in body.nodes if not isinstance(n.op, LeafOp)]
    return len(ops) > 1 or any([op.native for op in ops])


def _shaped(flat: Array, shape: tuple[int, ...]) -> Array:
    """A vector as an array of a shape, which owns its memory."""
    if flat.shape != shape:
        flat.resize(shape, refcheck=False)  # type: ignore[attr-defined]
    return flat
