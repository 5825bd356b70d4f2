"""The function of one partition, and its derivatives, as they run in a worker.

A task is one partition of one sum: ``(program, operands, partition)``.  The program and the
operands are pickled once for each sum, with keys that are digests of their bytes; a process keeps
the last programs by key, so that each is compiled once in each process.

    SummedFunction      the function to be summed: a value, a gradient, or derivatives of these
    PartitionProgram    such a function, compiled for the shapes of partitions
    run, run_packed     the contribution of one partition
    arguments_of        a partition as arguments of the function
    single_threaded     a context in which native code uses one thread
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.arguments import name_of
from wengert._engine.autodiff.grad import value_and_grad
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.autodiff.pullback import check_scalar
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.backends.llvm.runtime.settings import get_threads, set_threads
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.thread_state import lock
from wengert._engine.graphs import spec
from wengert._engine.jit import jit
from wengert._engine.jit.call_signature import static_key
from wengert.errors import ArgumentError, PartitionError

from .agreement import Packed

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

PROGRAMS = 32  # functions that a process keeps compiled
OPERANDS = 4  # unpickled parameters that a process keeps
SHAPES = 64  # compiled functions of one program
Step = tuple[Any, ...]  # ("vjp", outputs, wanted, guarded), ("jvp", active), ("vmap", batched)
Outputs = list[Any]


class SummedFunction(NamedTuple):
    """The function of the operands that is summed over the partitions.

    Attributes
    ----------
    template : pytree
        The parameters, with the number of an operand in the place of each leaf that is one.
    arity : int
        The number of operands in it.
    wanted : tuple of int or None
        The operands with respect to which the gradient is computed; None for the value alone.
    steps : tuple
        Derivatives and batches of that function, the innermost first. Operands of a step, such as
        cotangents, follow those of the function.
    """

    template: Any
    arity: int
    wanted: tuple[int, ...] | None
    steps: tuple[Step, ...] = ()

    def function(self, f: Callable[..., Any]) -> Callable[[Sequence[Any], Sequence[Any]], Outputs]:
        """The function of operands and of the arguments that are the partition."""
        result = self._values(f)
        for step in self.steps:
            result = _STEPS[step[0]](result, *step[1:])
        return result

    def _values(self, f: Callable[..., Any]) -> Callable[[Sequence[Any], Sequence[Any]], Outputs]:
        markers, structure = pytree.flatten(self.template)
        wanted, name = self.wanted, name_of(f)

        def call(operands: Sequence[Any], partition: Sequence[Any]) -> Any:
            leaves = [operands[m.number] if type(m) is Slot else m for m in markers]
            return converted(f)(pytree.unflatten(structure, leaves), *partition)

        def values(operands: Sequence[Any], partition: Sequence[Any]) -> Outputs:
            if wanted is None:
                value = call(operands, partition)
                check_scalar(value, name)
                return [value]
            numbers: tuple[int, ...] = wanted

            def of_wanted(chosen: list[Any]) -> Any:
                return call(_replaced(operands, numbers, chosen), partition)

            of_wanted.__name__ = name
            value, bars = value_and_grad(of_wanted)([operands[k] for k in numbers])
            return [value, *bars]

        return values


class Slot:
    """The place of an operand in the parameters."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is Slot and other.number == self.number

    def __hash__(self) -> int:
        return hash((Slot, self.number))

    def __reduce__(self) -> Any:
        return Slot, (self.number,)


def _replaced(xs: Sequence[Any], numbers: Sequence[int], values: Sequence[Any]) -> list[Any]:
    result = list(xs)
    for k, value in zip(numbers, values, strict=True):
        result[k] = value
    return result


def _vjp(
    function: Any, outputs: tuple[int, ...], wanted: tuple[int, ...], guarded: bool
) -> Callable[..., Outputs]:
    def cotangents(operands: Sequence[Any], partition: Sequence[Any]) -> Outputs:
        xs = operands[: len(operands) - len(outputs)]
        ts = list(operands[len(xs) :])

        def of_wanted(*chosen: Any) -> Outputs:
            results = function(_replaced(xs, wanted, chosen), partition)
            ys = [results[k] for k in outputs]
            if guarded:  # zero cotangents are those of a branch that was not taken
                ys = [np.where(t != 0, y, 0) for t, y in zip(ts, ys, strict=True)]
            return ys

        return list(vjp(of_wanted, *[xs[k] for k in wanted])[1](ts))

    return cotangents


def _jvp(function: Any, active: tuple[int, ...]) -> Callable[..., Outputs]:
    def tangents(operands: Sequence[Any], partition: Sequence[Any]) -> Outputs:
        xs = operands[: len(operands) - len(active)]
        dots = tuple(operands[len(xs) :])

        def of_active(*chosen: Any) -> Outputs:
            return function(_replaced(xs, active, chosen), partition)  # type: ignore[no-any-return]

        return list(jvp(of_active, tuple([xs[k] for k in active]), dots)[1])

    return tangents


def _vmap(function: Any, batched: tuple[bool, ...]) -> Callable[..., Outputs]:
    def batch(operands: Sequence[Any], partition: Sequence[Any]) -> Outputs:
        def of_one(*one: Any) -> Outputs:
            return function(one, partition)  # type: ignore[no-any-return]

        axes = tuple([0 if b else None for b in batched])
        return list(vmap(of_one, in_axes=axes)(*operands))

    return batch


_STEPS: dict[str, Callable[..., Callable[..., Outputs]]] = {
    "vjp": _vjp,
    "jvp": _jvp,
    "vmap": _vmap,
}


class PartitionProgram:
    """A function to be summed, compiled for the shapes of partitions.

    Which program runs for a partition depends on its shapes alone, not on those of partitions that
    the process had before, so that the result has the same bits in every process.  If possible it
    is one for all lengths of the first axes, in which equal lengths are equal.
    """

    def __init__(self, f: Callable[..., Any], summed: SummedFunction, compiled: bool) -> None:
        self._function, self._compiled = summed.function(f), compiled
        self._programs: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = lock()

    def __call__(self, operands: Sequence[Any], partition: Sequence[Any]) -> Outputs:
        """The outputs for one partition."""
        if not self._compiled:
            return list(self._function(operands, partition))
        leaves, structure = pytree.flatten(tuple(partition))
        key = structure, tuple(map(_kind, operands)), tuple(map(_kind, leaves))
        general = self._general(key, operands, leaves, structure)
        if general is not None:
            known = general.cache_info().programs
            result = general(operands, partition)
            if general.cache_info().programs == known:
                return list(result)
            # It does not support these shapes, and has compiled another program for them.
            with self._lock:
                self._programs[key] = None
                self._forget(general)
        return list(self._find(("exact", key), self._jitted)(operands, partition))

    def _jitted(self) -> Any:
        return jit(self._function)

    def _find(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A compiled function, made if there is none."""
        with self._lock:
            if key not in self._programs:
                self._programs[key] = make()
                while len(self._programs) > SHAPES:
                    self._programs.popitem(last=False)
            self._programs.move_to_end(key)
            return self._programs[key]

    def _forget(self, general: Any) -> None:
        """Remove a compiled function, which is made again without the additional program."""
        for key in [k for k, program in self._programs.items() if program is general]:
            del self._programs[key]

    def _general(
        self, key: Hashable, operands: Sequence[Any], leaves: Sequence[Any], structure: Any
    ) -> Any:
        """The compiled function for all lengths; None if these shapes need one of their own."""
        lengths = [x.shape[0] for x in leaves if isinstance(x, np.ndarray) and x.ndim]
        if not lengths or 0 in lengths or self._programs.get(key, key) is None:
            return None
        names = {n: f"n{k}" for k, n in enumerate(dict.fromkeys(lengths))}

        def pattern(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return spec((), x.dtype) if isinstance(x, np.generic) else x
            shape = (names[x.shape[0]], *x.shape[1:]) if x.ndim else ()
            return spec(shape, x.dtype)

        def exact(x: Any) -> Any:
            return spec(x.shape, x.dtype) if isinstance(x, np.ndarray | np.generic) else x

        def make() -> Any:
            compiled = self._jitted()
            try:
                symbolic = pytree.unflatten(structure, list(map(pattern, leaves)))
                compiled.compile(list(map(exact, operands)), symbolic)
            except Exception:  # with concrete lengths it may succeed, or raises the error again
                return None
            return compiled

        specs = tuple([_kind(x, names) for x in leaves])
        return self._find(("general", structure, tuple(map(_kind, operands)), specs), make)


def _kind(x: Any, names: dict[int, str] | None = None) -> Any:
    """What a program depends on: dtype and shape, or the value of a leaf that is not an array."""
    if isinstance(x, np.ndarray | np.generic):
        shape: tuple[Any, ...] = x.shape
        if names and shape:
            shape = (names[shape[0]], *shape[1:])
        return x.dtype, shape
    if isinstance(x, bool | int | float | complex):
        return type(x)
    return static_key(x)


# ---- partitions ----------------------------------------------------------------------------------


def arguments_of(partition: Any, is_bag: bool = False) -> tuple[Any, ...] | None:
    """A partition as arguments of the function; None if it has no items."""
    if callable(partition) and not hasattr(partition, "__array__"):
        partition = partition()
    if is_bag:
        items = list(partition)
        if not items:
            return None
        partition = _columns(items)
    parts = partition if isinstance(partition, tuple) else (partition,)
    return tuple(map(_plain, parts))


def _columns(items: list[Any]) -> Any:
    """The items of a bag: numbers as an array, tuples and dicts of numbers as arrays."""
    first = items[0]
    if all(isinstance(x, float | int | complex | np.number | np.bool_) for x in items):
        return np.array(items)
    if type(first) is tuple and all(type(x) is tuple and len(x) == len(first) for x in items):
        columns: list[Any] = [_columns(list(column)) for column in zip(*items, strict=True)]
        if all(isinstance(c, np.ndarray) for c in columns):
            return tuple(columns)
    if type(first) is dict and all(type(x) is dict and x.keys() == first.keys() for x in items):
        named = {k: _columns([x[k] for x in items]) for k in first}
        if all(isinstance(c, np.ndarray) for c in named.values()):
            return named
    return items


def _plain(part: Any) -> Any:
    """An argument with data frames as dicts of arrays, and memory maps as arrays."""
    if hasattr(part, "to_numpy"):
        if not hasattr(part, "columns"):
            return _numeric(part.to_numpy(), getattr(part, "name", None))
        return {name: _numeric(part[name].to_numpy(), name) for name in part.columns}
    return np.asarray(part) if isinstance(part, np.memmap) else part


def _numeric(column: Array, name: Any) -> Any:
    if column.dtype.kind not in "biufc":
        raise ArgumentError(
            f"the column {name!r} of a data frame has dtype {column.dtype}. Select the columns of "
            "numbers, or convert it to numbers"
        )
    return column


# ---- tasks ---------------------------------------------------------------------------------------


class _Recent:
    """The last objects that were made from packed bytes, by key."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, lock()
        self._objects: OrderedDict[str, Any] = OrderedDict()

    def get(self, source: Packed, make: Callable[[Any], Any]) -> Any:
        """The object of some bytes."""
        with self._lock:
            if source.key not in self._objects:
                self._objects[source.key] = make(source.unpickled())
                while len(self._objects) > self._most:
                    self._objects.popitem(last=False)
            self._objects.move_to_end(source.key)
            return self._objects[source.key]

    def __len__(self) -> int:
        return len(self._objects)


programs, operands_of = _Recent(PROGRAMS), _Recent(OPERANDS)


def run_packed(
    program: Packed, operands: Packed, partition: Any, index: int, count: int, is_bag: bool = False
) -> Outputs | None:
    """The contribution of a partition, in a process that was sent program and operands."""
    return run(
        lambda: programs.get(program, lambda parts: PartitionProgram(*parts)),
        lambda: operands_of.get(operands, lambda leaves: leaves),
        partition,
        index,
        count,
        is_bag,
    )


def run(
    program: Callable[[], PartitionProgram],
    operands: Callable[[], Sequence[Any]],
    partition: Any,
    index: int,
    count: int,
    is_bag: bool = False,
) -> Outputs | None:
    """The contribution of a partition; None if it is empty and so has no known structure.

    Raises
    ------
    PartitionError
        The function raised an error; its cause is that error.
    """
    try:
        if isinstance(partition, Packed):
            partition = partition.unpickled()
        arguments = arguments_of(partition, is_bag)
        if arguments is None:
            return None
        with single_threaded():
            return program()(operands(), arguments)
    except Exception as error:
        raise PartitionError.of(error, index, count) from error


_threads_lock = lock()
_threads = {"users": 0, "before": 0}


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which native code uses one thread; several Python threads may be in it."""
    with _threads_lock:
        if not _threads["users"]:
            _threads["before"] = get_threads()
            set_threads(1)
        _threads["users"] += 1
    try:
        yield
    finally:
        with _threads_lock:
            _threads["users"] -= 1
            if not _threads["users"]:
                set_threads(_threads["before"])
