"""Result: the outputs of a function that is being differentiated, and its tape.

It decides how derivatives are returned to the caller: as plain arrays if plain arrays were passed
and no outer derivative is recorded.  The checks of outputs, unconnected variables and seeds that
all transformations share are here too.

Basis vectors: all columns, or all rows, of a Jacobian in one batched pass.

A pass is linear, so it is traced once along a placeholder and evaluated for the batch of all unit
vectors (vmap.py).  With more than a few elements this is faster than one pass per element, and it
is the only possibility if their number is symbolic.

    columns_of         the derivatives along each unit vector of the inputs
    rows_of            the derivatives of each element of the outputs
    is_faster_batched  whether batching is faster than one pass at a time
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.implicit_conversions import chosen
from wengert._engine.core.node import ConstantLeaf, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.other_libraries import Labelled, is_labelled, values_of
from wengert._engine.core.other_libraries import calls as labelled_calls
from wengert._engine.core.recording import current_trace, is_recording
from wengert._engine.core.spec import Spec, unweakened
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.core.uniform_arrays import zeros
from wengert.errors import (
    ArgumentError,
    DtypeError,
    NotScalarError,
    ShapeError,
    StructureError,
    UnconnectedError,
    UnconnectedWarning,
    at,
    user_level,
    user_line,
)

from .arguments import Variables, zeros_like
from .batch_graph import map_over_batch
from .forward import pushforward
from .infinities import cast
from .messages import Messages, are_replicated, counted_once
from .reverse import gathered, has_nan, pullback
from .tape import Tape, tape_between

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

POLICIES = ("zero", "warn", "raise")


class Result:
    """The outputs of a call, and the tape from the variables to them."""

    def __init__(
        self,
        outs: Sequence[Any],
        nodes: Sequence[Node],
        variables: Variables,
        messages: Messages | None = None,
    ) -> None:
        self.messages = messages if messages is not None and messages.were_sent else None
        nodes = list(nodes) if self.messages is None else [*nodes, self.messages.node]
        self.targets = nodes
        self.out_nodes = [o.node if isinstance(o, Handle) else None for o in outs]
        if None in self.out_nodes:
            for o in outs:
                if not isinstance(o, Handle) and is_labelled(o):
                    raise Labelled(o, is_result=True)
        self.new = {} if self.messages is None else self.messages.from_variants(self.out_nodes)
        live = [self.new.get(n, n) for n in self.out_nodes if type(n) is Node]
        self.connected = bool(live)
        self.tape: Tape = tape_between(live, set(nodes))
        has_outer = self.tape.foreign or any(_is_of_recorded(n) for n in nodes)
        self.recorded = (has_outer and is_recording()) or self.tape.traced
        self.closed = not has_outer and not self.tape.traced
        self.tensors = any(isinstance(x, Handle) for x in variables.leaves)

    def pull(self, seeds: dict[Node, Any]) -> list[Any]:
        """Cotangents of the variables."""
        live = {self.new.get(n, n): t for n, t in seeds.items() if type(n) is Node}
        recorded = self.recorded or _any_recorded(seeds)
        if self.messages is not None and self.messages.counts_once:
            live = counted_once(live)
        bars = pullback(live, self.targets, recorded, self.tape, closed=self.closed)
        if self.messages is not None:
            self.messages.end(bars.pop())
        return bars

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs; None for outputs that do not depend on a variable."""
        if self.messages is not None:
            tangents = [*tangents, self.messages.token_of_tangents()]
        dots = dict(zip(self.targets, tangents, strict=True))
        recorded = self.recorded or _any_recorded(dots)
        live = [self.new.get(n, n) for n in self.out_nodes if type(n) is Node]
        if self.messages is None:
            tangents_out = iter(pushforward(live, dots, recorded, self.tape, self.closed))
        else:
            last = self.new.get(self.messages.last, self.messages.last)
            found = pushforward([*live, last], dots, recorded, self.tape, self.closed)
            self.messages.end(found.pop())
            tangents_out = iter(found)
        return [next(tangents_out) if type(n) is Node else None for n in self.out_nodes]

    def has_shared_columns(self) -> bool:
        """Whether forward mode with unit vectors gives the columns of the Jacobian.

        With messages it does for arguments that are the same in all processes.
        """
        return self.messages is None or are_replicated(self.tape.nodes, self.targets[:-1])

    def plain(self, x: Operand) -> Any:
        """An output as it is returned to the caller."""
        if not isinstance(x, Handle) or self.recorded:
            return labelled_calls().with_values(x, self.plain) if is_labelled(x) else x
        return wrap(constant(x.node.value)) if self.tensors else unweakened(x.node.value)

    def as_given(self, derivative: Array | None) -> Any:
        """A derivative as it is returned: a tensor if a tensor was passed."""
        is_plain = not isinstance(derivative, Handle)
        return wrap(constant(derivative)) if self.tensors and is_plain else derivative

    def copied(self, x: Operand) -> Any:
        """As `plain`; copied, since the caller may write to it while the tape is needed."""
        out = self.plain(x)
        return out.copy() if type(out) is np.ndarray and isinstance(x, Handle) else out


def _is_of_recorded(node: Node) -> bool:
    source = node.args[0]
    return type(source) is Node or (
        current_trace() is not None and not isinstance(source, ConstantLeaf)
    )


def _any_recorded(items: dict[Node, Any]) -> bool:
    return any(
        isinstance(t, Handle) and (type(t.node) is Node or t.node.is_traced) for t in items.values()
    )


def check_policy(unconnected: str) -> None:
    """Raise for an unknown policy."""
    if not isinstance(unconnected, str) or unconnected not in POLICIES:
        raise ArgumentError(
            f"unconnected={unconnected!r} is not one of {POLICIES}{at(user_line())}."
        )


def check_scalar(out: Operand, what: str) -> np.dtype[Any]:
    """The dtype of an output; raise if it is not one real number."""
    spec = describe(out)
    if spec is None and is_labelled(out):
        raise Labelled(out, is_result=True)
    if spec is None or isinstance(spec, tuple):
        returned = f"a {type(out).__name__}"
    elif spec.shape == () and spec.dtype.kind == "f":
        dtype: np.dtype[Any] = spec.dtype
        return dtype
    else:
        returned = str(spec)
    remedy = values_of(out, is_result=True) or "Sum the result, or use wengert.jacobian"
    if returned == "a NoneType":
        remedy = "A function without `return` returns None: return the number"
    elif isinstance(out, tuple):
        remedy = "Return one number, or pass has_aux=True to return (value, aux)"
    elif spec is not None and not isinstance(spec, tuple) and spec.dtype.kind == "c":
        remedy = "Take its real part, abs, or another real function of it"
    elif spec is not None and not isinstance(spec, tuple) and spec.dtype.kind in "mM":
        remedy = "A time is an integer number of units: make it a float, t / np.timedelta64(1, 's')"
    elif spec is not None and not isinstance(spec, tuple) and spec.shape == ():
        remedy = "An integer has no derivative: compute it in floating point"
    raise NotScalarError(
        f"{what}: it returned {returned}, not one real number. {remedy}{at(user_line())}."
    )


def split_aux(
    out: Operand | Sequence[Array | dict[Any, Any]], has_aux: bool, what: str
) -> tuple[Any, Any]:
    """The output and the auxiliary data."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise StructureError(
            f"{what}: has_aux=True, but it returned a {type(out).__name__} and not a pair. "
            f"Return (value, aux){at(user_line())}."
        )
    return out


def fill(bars: list[Any], variables: Variables, unconnected: str, what: str) -> list[Any]:
    """Zeros for variables that the output does not depend on, or a warning or error."""
    rules = chosen()
    if rules is not None and rules.independent is not None and unconnected == "zero":
        unconnected = rules.independent
    for k, bar in enumerate(bars):
        if bar is not None:
            continue
        if unconnected != "zero":
            path = pytree.paths(variables.restore(range(len(variables.nodes))))[variables.slots[k]]
            message = (
                f"{what}: the output does not depend on the argument at {path}. Its derivative "
                "is zero; if that is unexpected, look for a conversion to plain numbers, an "
                f"integer cast, a comparison or stop_gradient between them{at(user_line())}."
            )
            if unconnected == "raise":
                raise UnconnectedError(message)
            warnings.warn(message, UnconnectedWarning, stacklevel=user_level())
        bars[k] = zeros_like(variables.nodes[k])
    return bars


def match(
    tree: Array | dict[Any, Any] | Sequence[Operand | dict[Any, Any]],
    leaves: Sequence[Any],
    structure: Any,
    what: str,
    noun: str,
) -> list[Any]:
    """Cotangents or tangents of the leaves, checked and cast to their dtypes."""
    items, other = pytree.flatten(tree)
    if other != structure:
        raise StructureError(
            f"{what}: the {noun} have structure {other}, but {structure} is needed"
            f"{at(user_line())}."
        )
    fitted: list[Any] = []
    for item, leaf in zip(items, leaves, strict=True):
        spec = describe(leaf)
        if spec is None or spec.dtype.kind not in "fc":
            fitted.append(None)
            continue
        if item is None:
            fitted.append(zeros(spec))
            continue
        value: Any = item if isinstance(item, Handle) else np.asarray(item)
        shape = value.shape
        if shape != spec.shape:
            raise ShapeError(
                f"{what}: a {noun[:-1]} has shape {shape}, but its primal has shape "
                f"{spec.shape}. Give them the same shape{at(user_line())}."
            )
        if value.dtype.kind == "c" and spec.dtype.kind == "f":
            raise DtypeError(
                f"{what}: a {noun[:-1]} is complex, but its primal is {spec}. Take its "
                f"real part, or make the primal complex{at(user_line())}."
            )
        fitted.append(cast(value, spec.dtype)[()])
    return fitted


FEW_PASSES = 12  # passes that cost less than tracing one
# An operation on a part of an array (`vjp_into`) touches only that part in a single pass, and the
# whole array in a batched one, which is slower if the array has more elements than this (forward,
# reverse).
PARTIAL_ACCESS_LIMITS = (2000, 300)
CHUNK = 1 << 22  # elements of the largest value in a batched pass
Block = Any  # array or handle with the unit vectors along the first axis, or None for zero


def is_faster_batched(result: Result, count: Size, reverse: bool) -> bool:
    """Whether one batched pass is faster than `count` passes."""
    if result.tape.traced or not isinstance(count, int):
        return True
    if count <= FEW_PASSES:
        return False
    limit, partial_accesses = PARTIAL_ACCESS_LIMITS[reverse], 0
    for node in result.tape.nodes:
        if node.info is not None and node.info.hooks is not None:
            return False
        if node.op.vjp_into is not None and node.args:
            partial_accesses += node.args[0].spec.size > limit
    return partial_accesses <= FEW_PASSES


def unit_vector(spec: Spec, k: int) -> Any:
    """An array that is 1 at element k and 0 elsewhere."""
    e = np.zeros(spec.size, spec.dtype)
    e[k] = 1.0
    return e.reshape(spec.shape)[()]


def columns_of(result: Result, in_specs: Sequence[Spec], factor: Any = 1) -> list[list[Block]]:
    """The derivatives along the unit vectors of each input, for each output."""

    def push(*dots: Any) -> list[Any]:
        return result.push(dots)

    return _batched_pass(push, in_specs, result, factor)


def rows_of(result: Result, out_specs: Sequence[Spec], factor: Any = 1) -> list[list[Block]]:
    """The derivatives of the elements of each output, for each input."""
    reached = set(result.tape.nodes)
    nodes = [n if n in reached else None for n in result.out_nodes]

    def pull(*seeds: Any) -> list[Any]:
        return result.pull(gathered(zip(nodes, seeds, strict=True)))

    return _batched_pass(pull, out_specs, result, factor)


def _batched_pass(
    run: Callable[..., list[Any]], specs: Sequence[Spec], result: Result, factor: int
) -> list[list[Block]]:
    sizes = [s.size for s in specs]
    total: Any = sum(sizes)
    plain = not (result.recorded or result.tape.traced)
    step = total
    if plain:
        largest = max((n.spec.size for n in result.tape.nodes if type(n.spec) is Spec), default=1)
        step = max(FEW_PASSES, 1, CHUNK // max(largest, 1))
    chunks = []
    start: Any = 0
    while True:
        count = total - start if not isinstance(total, int) else min(step, total - start)
        chunks.append(_run_chunk(run, specs, start, count, factor, not plain))
        start = start + count
        if not isinstance(total, int) or start >= total:
            break
    blocks = [_joined(column) for column in zip(*chunks, strict=True)]
    return _split(blocks, sizes)


def _run_chunk(
    run: Callable[..., Any],
    specs: Sequence[Spec],
    start: int,
    count: Size,
    factor: int,
    record: bool,
) -> list[Block]:
    """The results of the pass along consecutive unit vectors of the product of all spaces."""
    units = []
    offset: Any = 0
    for spec in specs:
        units.append(_units(spec, count, start - offset, factor))
        offset = offset + spec.size
    pairs = map_over_batch(run, units, count, "the pass", record)
    blocks = []
    for value, batched in pairs:
        if value is not None and not batched:
            value = lookup("broadcast_to")(value, shape=(count, *shape_of(value)))
        blocks.append(value)
    return blocks


def _units(spec: Spec, count: Any, first: Any, factor: int) -> Any:
    """The unit vectors from `first` to `first + count`; zeros for indices of other spaces."""
    if is_symbolic((count, first, *spec.shape)):
        params = {"rows": count, "columns": spec.size, "offset": first, "dtype": spec.dtype}
        eye = lookup("eye").record(**params)
    else:
        length: Any = spec.size
        eye = np.eye(count, length, first, spec.dtype)
    if factor != 1:  # the imaginary unit, which a real space does not have
        eye = eye * (spec.dtype.type(factor) if spec.dtype.kind == "c" else 0.0)
    return lookup("reshape")(eye, shape=(count, *spec.shape))


def _joined(parts: Sequence[Block]) -> Block:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return np.concatenate(parts)


def _split(blocks: Sequence[Block], sizes: Sequence[Any]) -> list[list[Block]]:
    """The results along all unit vectors, split into those of each space."""
    rows = []
    start: Any = 0
    for size in sizes:
        part = slice(start, start + size)
        if len(sizes) == 1:
            rows.append(list(blocks))
        else:
            rows.append(
                [None if x is None else lookup("getitem")(x, index=(part,)) for x in blocks]
            )
        start = start + size
    return rows


def has_no_nan(blocks: Sequence[Sequence[Block]]) -> bool:
    """Whether no result is NaN; a pass along a single vector may avoid one."""
    with np.errstate(invalid="ignore"):  # sums of infinities of both signs
        return not any(has_nan(x) for row in blocks for x in row)
