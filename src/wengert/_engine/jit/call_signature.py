"""Call signatures: a call as a cache key, and the arrays that are inputs of a program.

Containers are flattened.  An array is an input, with its dtype and shape in the key; a Python
number is an input, with its class in the key; everything else is a constant of the program, with
its value in the key (or its identity, if it cannot be hashed).

    CallSignature    one call
    StaticArguments  the static arguments of a function, from which signatures are made
    static_key       the key of a static value
    IdentityKey      the key of an object, by identity
"""

from __future__ import annotations

import functools
import weakref
from array import array
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import is_immutable
from wengert._engine.core.device_arrays import device_spec, device_value, is_on_device
from wengert._engine.core.handle import Handle
from wengert._engine.core.implicit_conversions import chosen
from wengert._engine.core.other_libraries import (
    Labelled,
    base_of,
    has_other_methods,
    has_units,
    is_labelled,
    values_of,
)
from wengert._engine.core.recording import switches
from wengert._engine.core.spec import WEAK, Spec
from wengert.errors import ArgumentError, ConversionError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand


class _Number:
    """The kind of a Python number in a key; not a dtype, because these compare equal to `float`."""

    def __init__(self, kind: type) -> None:
        self.spec = Spec((), np.dtype(kind), weak=True)

    def __repr__(self) -> str:
        return f"<a Python {self.spec.dtype.name}>"


_NUMBERS: dict[type, _Number] = {kind: _Number(kind) for kind in (float, int, bool, complex)}
_SIMPLE = frozenset((np.ndarray, *_NUMBERS))


class CallSignature:
    """The structure, dtypes and shapes of one call.

    Attributes
    ----------
    structure : object
        The pytree structure of ``(args, kwargs)``.
    kinds : tuple
        For each leaf the dtype of an array, a `_Number`, or the key of its value.
    shapes : tuple
        For each leaf the shape of an array; None for other leaves.
    leaves, fed : list
        All leaves as passed, and those that are inputs of the program.
    handles, traced : bool
        Whether some leaf is a tensor, and whether some leaf is traced.
    policy : Policy or None
        The policy under which graphs are built.
    key : hashable
        Equal for calls that can use the same program.
    """

    __slots__ = (
        "_given",
        "fed",
        "handles",
        "key",
        "kinds",
        "leaves",
        "policy",
        "shapes",
        "structure",
        "traced",
    )

    def __init__(self, structure: Any, leaves: list[Any], is_spec: bool) -> None:
        self.structure, self.leaves = structure, leaves
        self._given: CallSignature | None = None  # not itself: the arguments would stay in memory
        self.handles = self.traced = False
        kinds: list[Any] = []
        shapes: list[Any] = []
        fed: list[Any] = []
        for x in leaves:
            cls = type(x)
            if cls is np.ndarray:
                kinds.append(x.dtype)
                shapes.append(x.shape)
                fed.append(x)
                continue
            kind: Any = _NUMBERS.get(cls)
            shape: Any = None
            if kind is None and isinstance(x, Handle):
                kind, shape = self._of_tensor(x)
            elif kind is None:
                if is_on_device(x):
                    spec = device_spec(x)
                    kind, shape = spec.dtype, spec.shape
                else:
                    if hasattr(cls, "__array__") and not issubclass(cls, np.ndarray | np.generic):
                        x = leaves[len(kinds)] = _as_array(x)
                    kind, shape = _key_and_shape(x, is_spec)
            if isinstance(kind, np.dtype | _Number):
                fed.append(x)
            kinds.append(kind)
            shapes.append(shape)
        self.kinds, self.shapes, self.fed = tuple(kinds), tuple(shapes), fed
        self.policy = chosen() if switches.count else None
        self.key = structure, self.kinds, self.shapes, self.policy

    @property
    def given(self) -> CallSignature:
        """The call without captured arrays."""
        return self if self._given is None else self._given

    @given.setter
    def given(self, call: CallSignature) -> None:
        self._given = call

    def _of_tensor(self, x: Handle) -> tuple[Any, Any]:
        self.handles = True
        state = device_value(x.node)
        if state is not None:
            return state.spec.dtype, state.spec.shape
        value = x.node.value
        if value is None:
            self.traced = True
            return None, None
        weak = WEAK.get(type(value))
        return _key_and_shape(value, False) if weak is None else (_NUMBERS[weak], None)

    @property
    def is_simple(self) -> bool:
        """Whether all arguments are inputs, and none is a container."""
        return len(self.fed) == len(self.leaves) and all(
            x.is_leaf() for part in self.structure.children() for x in part.children()
        )

    @property
    def positional(self) -> int:
        """The number of inputs given by position; the others follow."""
        count = self.structure.children()[0].num_leaves
        return sum(isinstance(kind, np.dtype | _Number) for kind in self.kinds[:count])

    @property
    def pinned(self) -> tuple[set[int], set[str]]:
        """The static arguments, by position and by name."""
        marks = [isinstance(x, Pinned) for x in self.leaves]
        if not any(marks):
            return set(), set()
        args, kwargs = self.unflattened(marks)
        return {i for i, m in enumerate(args) if m is True}, {
            k for k, m in kwargs.items() if m is True
        }

    @property
    def unfed(self) -> list[tuple[int, Any]]:
        """The leaves that are constants of the program, each with its position."""
        pairs = enumerate(zip(self.leaves, self.kinds, strict=True))
        return [(i, x) for i, (x, kind) in pairs if not isinstance(kind, np.dtype | _Number)]

    @property
    def objects(self) -> list[tuple[int, Any]]:
        """The leaves whose attributes may change, each with its position."""
        pairs = [(k, x.value if type(x) is Pinned else x) for k, x in self.unfed]
        return [(k, x) for k, x in pairs if is_object(x)]

    @property
    def objects_key(self) -> Hashable:
        """Equal for calls with the same objects as constant leaves."""
        if len(self.fed) == len(self.leaves):
            return ()
        return tuple([(k, IdentityKey(x)) for k, x in self.objects])

    @property
    def family(self) -> Hashable:
        """Equal for calls that differ in sizes only."""
        ranks = tuple([None if s is None else len(s) for s in self.shapes])
        return self.structure, self.kinds, ranks, self.policy

    def specs(self, shapes: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with specs of the given shapes in place of inputs."""
        leaves: list[Any] = []
        for x, kind, shape in zip(self.leaves, self.kinds, shapes, strict=True):
            if isinstance(kind, _Number):
                leaves.append(kind.spec)
            elif isinstance(kind, np.dtype):
                leaves.append(Spec(shape, kind))
            else:
                leaves.append(x.value if type(x) is Pinned else x)
        return self.unflattened(leaves)

    def unflattened(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other leaves."""
        args, kwargs = pytree.unflatten(self.structure, leaves)
        return args, kwargs


class Pinned:
    """A static argument, which is one leaf even if it is a container."""

    __slots__ = ("value",)

    def __init__(self, value: Operand | list[int]) -> None:
        self.value = value


class StaticArguments:
    """The static arguments of a function.

    Parameters
    ----------
    positions : collection of int
        May be negative.
    names : collection of str
    parameters : sequence of str
        The names of the function's positional parameters.

    Attributes
    ----------
    numbers : tuple of type
        The classes of Python numbers that are also static, because the function needs their values.
    """

    def __init__(
        self, positions: Collection[int], names: Collection[str], parameters: Sequence[str]
    ) -> None:
        by_name = {parameters[n] for n in positions if -len(parameters) <= n < len(parameters)}
        self.negative = [n for n in positions if n < 0]
        self.positions = {n for n in positions if n >= 0}
        self.positions |= {i for i, name in enumerate(parameters) if name in set(names)}
        self.names = {*names, *by_name}
        self.numbers: tuple[type, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether no argument is static."""
        return not (self.positions or self.names or self.negative or self.numbers)

    def static(self, args: tuple[Any, ...]) -> tuple[set[int], set[str]]:
        """The positions and the names of the static arguments of a call."""
        return {*self.positions, *(n + len(args) for n in self.negative)}, self.names

    def call(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        specs: bool = False,
        captured: bool = False,
    ) -> CallSignature:
        """The signature of a call.

        Parameters
        ----------
        specs : bool
            Whether specs may be given instead of arrays.
        captured : bool
            Whether the last of `args` contains captured arrays, and is not an argument.
        """
        if not self.is_plain:
            pinned, names = self.static(args[: len(args) - captured])
            kinds = self.numbers
            args = tuple(
                [Pinned(a) if i in pinned or type(a) in kinds else a for i, a in enumerate(args)]
            )
            kwargs = {
                k: Pinned(v) if k in names or type(v) in kinds else v for k, v in kwargs.items()
            }
        elif not kwargs and _SIMPLE.issuperset(map(type, args)):
            return CallSignature(_flat_structure(len(args)), list(args), specs)
        leaves, structure = pytree.flatten((args, kwargs))
        return CallSignature(structure, leaves, specs)


@functools.cache
def _flat_structure(count: int) -> Any:
    """The structure of `count` positional arguments that are not containers."""
    return pytree.flatten(((0,) * count, {}))[1]


def _key_and_shape(x: Any, specs: bool) -> tuple[Any, Any]:
    """The kind and the shape of a leaf: dtype and shape, or the key of its value and None."""
    if isinstance(x, np.ndarray | np.generic):
        if isinstance(x, np.ndarray) and type(x).__mul__ is not np.ndarray.__mul__:
            raise ConversionError(
                f"a compiled function was given a {type(x).__name__}, whose operators are not "
                f"those of arrays. Convert it, np.asarray(x){at(user_line())}."
            )
        return x.dtype, x.shape
    if isinstance(x, Spec):
        if not specs:
            raise ArgumentError(
                f"a compiled function was called with {x}, which has no values. Call it with "
                f"arrays; lower() and compile() take specs{at(user_line())}."
            )
        return (x.dtype, x.shape) if not x.weak else (_NUMBERS[_python_type(x)], None)
    return static_key(x.value if type(x) is Pinned else x), None


def _as_array(x: Any) -> np.ndarray[Any, Any]:
    """An array of another library as a NumPy array."""
    if is_labelled(x):
        raise Labelled(x)
    if has_units(x):  # the function computes with numbers, and would lose them
        raise ArgumentError(
            f"a compiled function was given a {type(x).__name__} in {getattr(x, 'units', '')}. "
            f"{values_of(x)}{at(user_line())}."
        )
    if has_other_methods(x):  # the standard deviation of torch, for example, divides by n - 1
        raise ArgumentError(
            f"a compiled function was given a {type(x).__name__} of {type(x).__module__}, whose "
            f"methods are not those of arrays. {values_of(x)}{at(user_line())}."
        )
    base = base_of(x)
    if base is not None:  # its methods may have another meaning
        raise ArgumentError(
            f"a compiled function was given a {type(x).__name__}, a class derived from {base}. "
            f"Pass its values, np.asarray(x), or a {base}{at(user_line())}."
        )
    try:
        array = np.asarray(x)
    except TypeError as error:
        raise ArgumentError(
            f"a compiled function was given a {type(x).__name__}: {str(error).rstrip('.')}. "
            f"{values_of(x) or 'Pass arrays'}{at(user_line())}."
        ) from error
    if array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"a compiled function was given a {type(x).__name__}, which as an array has dtype "
            f"{array.dtype}, not numbers. Select the numbers and convert them, x.to_numpy(), or "
            f"list the argument in static_argnames{at(user_line())}."
        )
    return array


def _python_type(spec: Spec) -> type:
    return next(kind for kind, n in _NUMBERS.items() if n.spec.dtype == spec.dtype)


def is_object(x: Any) -> bool:
    """Whether a constant leaf is an object that may be modified."""
    return not isinstance(x, Handle | Spec) and not is_immutable(x)


class IdentityKey:
    """The key of an object: compares by identity, by a weak reference if possible."""

    __slots__ = ("_hash", "_of")

    def __init__(self, x: Any) -> None:
        try:
            self._of: Any = weakref.ref(x)
        except TypeError:
            self._of = lambda: x
        self._hash = id(x)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdentityKey):
            return False
        referent = self._of()
        return referent is not None and referent is other._of()

    def __hash__(self) -> int:
        return self._hash


class UnhashableKey:
    """The key of an unhashable object: compares by identity, and keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnhashableKey) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def static_key(x: Any) -> Hashable:
    """The key of a static value.

    Containers are compared by their elements, numbers also by class and sign of zero, other objects
    by ``==``, which is identity if they do not define it. The key has a weak reference to the
    object if possible.
    """
    cls = type(x)
    if cls in (float, complex):
        return cls, repr(x)
    if isinstance(x, list | tuple):
        return (cls, *map(static_key, x))
    if isinstance(x, dict):
        return (cls, *((static_key(k), static_key(v)) for k, v in x.items()))
    if isinstance(x, set):
        return cls, frozenset(map(static_key, x))
    if isinstance(x, np.ndarray | Handle | array | bytearray | memoryview):
        raise ArgumentError(
            f"a static argument is a {cls.__name__}: its values would be part of the program, and "
            "each new array would compile another program. Pass it as an argument that is not "
            f"static{at(user_line())}."
        )
    is_plain = isinstance(x, str | bytes | bool | int | np.generic | type | np.dtype) or x is None
    try:
        hash(x)
        return (cls, x) if is_plain else (cls, weakref.ref(x))
    except TypeError:
        return _hashable(cls, x)


def _hashable(cls: type, x: Any) -> Hashable:
    """The key of an object that does not support weak references, or hashing."""
    try:
        hash(x)
        return cls, x
    except TypeError:
        return UnhashableKey(x)
