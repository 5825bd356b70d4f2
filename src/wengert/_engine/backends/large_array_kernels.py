"""Kernels of single operations, for eager operations on large arrays (core/large_arrays.py).

    value_of_large   the value of an operation
    cotangents       the contributions of an operation to the cotangents of its operands

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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_info import NodeInfo
from wengert._engine.core.op import RuleContext
from wengert._engine.core.spec import Spec, unweakened
from wengert._engine.core.symbolic.parsing import dim
from wengert.errors import WengertError

from .llvm.tuning import thresholds
from .registry import backend

if TYPE_CHECKING:
    from wengert._engine.control_flow import closure_conversion
    from wengert._engine.core.op import Op
    from wengert._engine.core.subgraph import Body
    from wengert._engine.core.types import Array
else:
    closure_conversion = LazyModule("wengert._engine.control_flow.closure_conversion")

_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
_EXACT = 1 << 53  # integers up to it are floating-point numbers
_NOT_SERVED = object()  # what an entry returns for arguments that it was not made for
_lock = lock()
_kernels: dict[Hashable, _Kernel | None] = {}


class _Kernel(NamedTuple):
    """The entry of a compiled graph; the graph lives as long as its program is used."""

    entry: Callable[..., Any]
    body: Body


class _Operands(NamedTuple):
    """Operands as a kernel takes them.

    arguments : arrays in C order, NumPy scalars.
    ranks : of each the number of axes, 0 for an array of one repeated number.
    """

    arguments: list[Any]
    ranks: tuple[int, ...]


# ---- values --------------------------------------------------------------------------------------


def value_of_large(op: Op, *values: Any, **params: Any) -> Any:
    """The value of an operation: ``op.run``, by native code if there is a kernel for it.

    A value that is not finite is NumPy's, with its warnings or errors (`numpy.errstate`).
    """
    out = None
    errors = np.geterr()
    if values[0].size >= thresholds.native_elements and errors["under"] == "ignore":
        out = _value(op, values, params)
        silent = all([how == "ignore" for how in errors.values()])
        if out is not None and not (silent or _is_finite(out)):
            out = None
    return op.run(*values, **params) if out is None else out


def _is_finite(x: Any) -> bool:
    """Whether all elements are finite; one pass if their sum is, too."""
    with np.errstate(all="ignore"):
        total = np.add.reduce(x, axis=None)
    return bool(np.isfinite(total) or np.isfinite(x).all())


def _value(op: Op, values: Sequence[Any], params: dict[str, Any]) -> Any:
    shape, dtype = values[0].shape, values[0].dtype
    flat = op.kind == "elementwise"
    operands = _operands(values, shape, dtype, flat)
    key = _key("value", op, params, dtype, operands)
    if operands is None or key is None or (flat and params):
        return None
    specs = [_spec(rank, dtype) for rank in operands.ranks]

    def computed(*xs: Any) -> Any:
        return op(*xs, **params)  # type: ignore[operator]

    found = _run(key, computed, specs, operands.arguments)
    if found is None:
        return None
    return _shaped(found[0], shape) if flat else found[0]


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
    shape, dtype = out.shape, out.dtype
    flat = op.kind == "elementwise"
    earlier = [s for s in sums if s is not None]
    operands = _operands([t, out, *values, *earlier], shape, dtype, flat)
    if operands is None or not (op.native or op.is_built_in):
        return None
    places = [k for k, chosen in enumerate(wanted) if chosen]
    ranks = operands.ranks[2 : 2 + len(values)]
    if not all([ranks[k] for k in places]) or (op.special_numbers and not all(ranks)):
        return None
    having = tuple([s is not None for s in sums]) or (False,) * len(places)
    key = _key("vjp", op, params, dtype, operands, tuple(places), twice, having)
    if key is None:
        return None
    count = len(values)

    def pulled(t: Any, out: Any, *rest: Any) -> Any:
        bars = _rule(op, params, t, out, rest[:count], places, twice)
        more = iter(rest[count:])
        return tuple([next(more) + b if s else b for b, s in zip(bars, having, strict=True)])

    full = _spec(max(ranks), dtype)
    found = _run(key, pulled, _specs(op, params, operands.ranks, full), operands.arguments, full)
    if found is None:
        return None
    return [_shaped(bar, shape) for bar in found] if flat else list(found)


def _specs(op: Op, params: dict[str, Any], ranks: Sequence[int], full: Spec) -> list[Spec]:
    """Of a cotangent, a result, operands, and sums."""
    specs = [_spec(rank, full.dtype) for rank in ranks]
    if op.kind != "elementwise":
        specs[0] = specs[1] = op.infer([full], params)
    return specs


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
    nodes = tuple([xs[0].node if twice else x.node for x in xs])
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
        elif not x.flags.c_contiguous or (flat and x.shape != shape):
            return None
        elif flat and x.ndim != 1:
            x = x.reshape(-1)
        arguments.append(x)
    return _Operands(arguments, tuple([x.ndim for x in arguments]))


def _key(
    what: str, op: Op, params: dict[str, Any], dtype: Any, operands: _Operands | None, *more: Any
) -> Hashable:
    """The key of a kernel; None if a parameter is not hashable."""
    if operands is None:
        return None
    key = (what, op, tuple(sorted(params.items())), dtype.char, operands.ranks, *more)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _run(
    key: Hashable,
    fun: Callable[..., Any],
    specs: Sequence[Spec],
    arguments: Sequence[Any],
    full: Spec | None = None,
) -> Any:
    """The results of the kernel of a function, compiled at its first use; None if there is none."""
    if key not in _kernels:
        with _lock:
            if key not in _kernels:
                _kernels[key] = _compiled(fun, specs, full)
    kernel = _kernels[key]
    if kernel is None:
        return None
    found = kernel.entry(*arguments)
    return None if found is _NOT_SERVED else found


def _compiled(fun: Callable[..., Any], specs: Sequence[Spec], full: Spec | None) -> _Kernel | None:
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
    entry = native.entry(body, single=False, otherwise=lambda *_: _NOT_SERVED)
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
