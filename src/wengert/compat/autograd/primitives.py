"""Primitives: opaque functions with user-defined derivatives, and their calls as nodes.

    primitive                             the decorator
    rules_of                              the rules of a primitive
    primitive_vjps, primitive_jvps        those of all primitives, by primitive
    notrace_primitive, register_notrace
                                          no derivative
    PrimitiveRules                        the derivative rules of a primitive
    call_primitive                        a call of a primitive

extend.py defines rules.

The arguments and results of a primitive may be anything: nested containers with tensors, options,
functions.  Each call whose arguments contain tensors creates an operation: the tensors are its
operands, everything else is stored in it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core import pytree
from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, describe, value_of
from wengert.extend.style_adapter import UserOperation

from ...errors import RegistryError, RuleError, at, user_line
from .errors import NoRuleError
from .vspace import conjugated

__all__ = """
    Function RuleTable notrace_primitive primitive primitive_jvps primitive_vjps
    register_notrace rules_of
""".split()


VJP = Callable[[Sequence[int], Any, tuple[Any, ...], dict[str, Any]], Callable[[Any], Any]]
JVP = Callable[[Sequence[int], Sequence[Any], Any, tuple[Any, ...], dict[str, Any]], Any]


class PrimitiveRules:
    """The derivative rules of a primitive.

    Attributes
    ----------
    vjp : callable or None
        ``vjp(argnums, ans, args, kwargs)`` gives g -> cotangents of these arguments.
    jvp : callable or None
        ``jvp(argnums, gs, ans, args, kwargs)`` gives the tangent.
    is_linear : bool
        Whether the primitive is linear, so that the forward rule is the primitive itself. The
        transpose is then computed column by column.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.vjp: VJP | None = None
        self.jvp: JVP | None = None
        self.is_linear = False


class _Call:
    """A call: the positions of the tensors in the arguments, and calls of the rules."""

    def __init__(
        self, function: Any, rules: PrimitiveRules, args: Any, kwargs: dict[str, Any]
    ) -> None:
        self.function, self.rules, self.kwargs = function, rules, kwargs
        pairs = [pytree.flatten(a) for a in args]
        self.leaves = [leaves for leaves, _ in pairs]
        self.structures = [structure for _, structure in pairs]
        self.slots = [
            (i, k)
            for i, leaves in enumerate(self.leaves)
            for k, x in enumerate(leaves)
            if isinstance(x, Handle)
        ]
        self.argnums = sorted({i for i, _ in self.slots})
        self.container: Any = None  # for a result that is a container

    @property
    def operands(self) -> list[Any]:
        """The tensors."""
        return [self.leaves[i][k] for i, k in self.slots]

    def arguments(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, with values in position of the tensors."""
        full = [list(leaves) for leaves in self.leaves]
        for (i, k), value in zip(self.slots, values, strict=True):
            full[i][k] = value
        return tuple([pytree.unflatten(s, x) for s, x in zip(self.structures, full, strict=True)])

    def run(self, *values: Any) -> Any:
        """The result of the function: an array, or the tuple of the leaves of a container."""
        out = self.function(*self.arguments(values), **self.kwargs)
        leaves, structure = pytree.flatten(out)
        if structure.is_leaf():
            return out
        self.container = structure
        return tuple(leaves)

    def unflatten(self, out: Any) -> Any:
        """The result in the container that the function returned."""
        return out if self.container is None else pytree.unflatten(self.container, out)

    def vjp(self, t: Any, out: Any, *inputs: Any) -> tuple[Any, ...]:
        """The cotangents of the tensors, in wengert's convention."""
        rule = self.rules.vjp
        if rule is None:
            raise self._missing("vjp")
        seeds = self.unflatten(tuple(_zero_for_none(t, out)) if self.container is not None else t)
        args = self.arguments(inputs)
        pull = rule(self.argnums, self.unflatten(out), args, self.kwargs)
        bars = conjugated(tuple(pull(conjugated(seeds))))
        if len(bars) != len(self.argnums):
            raise RuleError(
                f"the vjp of {self.rules.name} returned {len(bars)} cotangents for the arguments "
                f"{self.argnums}. Return one for each{at(user_line())}."
            )
        by_argument = {i: pytree.flatten(bar)[0] for i, bar in zip(self.argnums, bars, strict=True)}
        return tuple([self._leaf(by_argument[i], i, k) for i, k in self.slots])

    def _leaf(self, bars: list[Any], i: int, k: int) -> Any:
        if len(bars) == len(self.leaves[i]):
            return bars[k]
        if bars == [None]:
            return None
        raise RuleError(
            f"the vjp of {self.rules.name} with respect to argument {i} has {len(bars)} leaves, "
            f"but the argument has {len(self.leaves[i])}. Return the same containers"
            f"{at(user_line())}."
        )

    def transpose_by_columns(self, t: Any, out: Any, *inputs: Any) -> tuple[Any, ...]:
        """The cotangents of the tensors, from the tangents along all unit vectors."""
        bars = []
        for position, x in enumerate(inputs):
            spec = describe(x)
            units = (1, 1j) if spec.dtype.kind == "c" else (1,)
            found = []
            for index in np.ndindex(*spec.shape):
                total: Any = 0
                for unit in units:
                    e = np.zeros(spec.shape, spec.dtype)
                    e[index] = unit
                    dots: list[Any] = [None] * len(inputs)
                    dots[position] = e
                    total = total + unit * _product(t, self.jvp(dots, out, *inputs))
                found.append(total)
            bars.append(wnp.array(found).reshape(spec.shape).astype(spec.dtype))
        return tuple(bars)

    def jvp(self, dots: Sequence[Any], out: Any, *inputs: Any) -> Any:
        """The tangent of the result."""
        rule = self.rules.jvp
        if rule is None:
            raise self._missing("jvp")
        args = self.arguments(inputs)
        full = [[_zeros(x) for x in pytree.flatten(a)[0]] for a in args]
        moving = set()
        for (i, k), dot in zip(self.slots, dots, strict=True):
            if dot is not None:
                full[i][k] = dot
                moving.add(i)
        argnums = sorted(moving)
        gs = [pytree.unflatten(self.structures[i], full[i]) for i in argnums]
        dot = rule(argnums, gs, self.unflatten(out), args, self.kwargs)
        return dot if self.container is None else tuple(pytree.flatten(dot)[0])

    def _missing(self, mode: str) -> NoRuleError:
        return NoRuleError(
            f"{mode.upper()} of {self.rules.name} with respect to the arguments {self.argnums} is "
            f"not defined. Define it with def{mode}({self.rules.name}, ...){at(user_line())}."
        )


def _product(ts: Any, dots: Any) -> Any:
    """The real inner product <t, v> of all outputs."""
    pairs = zip(ts, dots, strict=True) if isinstance(ts, tuple) else [(ts, dots)]
    terms = [np.sum(np.real(np.conj(t) * v)) for t, v in pairs if t is not None and v is not None]
    return sum(terms)


def _zeros(x: Any) -> Any:
    return np.zeros_like(x) if isinstance(x, Handle | np.ndarray | np.generic | float) else None


def _zero_for_none(ts: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    return [np.zeros_like(o) if t is None else t for t, o in zip(ts, outs, strict=True)]


def call_primitive(
    function: Any, rules: PrimitiveRules, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a primitive: the function itself, or a node if there are tensors in `args`."""
    call = _Call(function, rules, args, kwargs)
    if not call.slots:
        return function(*args, **kwargs)
    vjp: Any = call.vjp if rules.vjp is not None or rules.jvp is None else None
    if vjp is None and rules.is_linear:
        vjp = call.transpose_by_columns
    jvp = call.jvp if rules.jvp is not None else None
    op = UserOperation(call.run, rules.name, vjp=vjp, jvp=jvp)
    return call.unflatten(apply(op, call.operands))


Function = Callable[..., Any]
_PRIMITIVES: weakref.WeakSet[Function] = weakref.WeakSet()


class RuleTable(MutableMapping[Function, Function]):
    """The rules of one mode of all primitives, by primitive: `primitive_vjps` or `primitive_jvps`.

    NumPy's and SciPy's functions are not primitives here and have no entries.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def __getitem__(self, fun: Function) -> Function:
        rules = getattr(fun, "rules", None)
        found = getattr(rules, self._mode) if isinstance(rules, PrimitiveRules) else None
        if found is None:
            raise KeyError(fun)
        return found  # type: ignore[no-any-return]

    def __setitem__(self, fun: Function, rule: Function) -> None:
        setattr(rules_of(fun), self._mode, rule)

    def __delitem__(self, fun: Function) -> None:
        self[fun]
        setattr(rules_of(fun), self._mode, None)

    def __iter__(self) -> Iterator[Function]:
        return iter([fun for fun in _PRIMITIVES if getattr(rules_of(fun), self._mode) is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))


primitive_vjps = RuleTable("vjp")
primitive_jvps = RuleTable("jvp")


def primitive(f_raw: Function) -> Function:
    """Make a function an opaque operation with user-defined derivatives (a decorator).

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> float(grad(cube)(2.0)), float(grad(grad(cube))(2.0))
    (12.0, 12.0)
    """
    rules = PrimitiveRules(getattr(f_raw, "__name__", "a function"))

    @functools.wraps(f_raw, updated=())
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return call_primitive(f_raw, rules, args, kwargs)

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    f_wrapped.rules = rules  # type: ignore[attr-defined]
    _PRIMITIVES.add(f_wrapped)
    return f_wrapped


def rules_of(fun: Any) -> PrimitiveRules:
    """The rules of a primitive.

    Raises
    ------
    RegistryError
        `fun` is not a primitive.
    """
    rules = getattr(fun, "rules", None)
    if not isinstance(rules, PrimitiveRules):
        raise RegistryError(
            f"{getattr(fun, '__name__', fun)!r} is not a primitive, so it cannot have rules. "
            f"Decorate it with @primitive first{at(user_line())}."
        )
    return rules


# ---- no derivative -------------------------------------------------------------------------------


def notrace_primitive(f_raw: Function) -> Function:
    """Make a function an opaque operation whose result is a constant (a decorator)."""

    @functools.wraps(f_raw, updated=())
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*pytree.tree_map(value_of, args), **pytree.tree_map(value_of, kwargs))

    return f_wrapped


def register_notrace(trace_type: Any, primitive_fun: Function) -> None:
    """Define the derivative of a primitive as zero, in both modes."""
    rules = rules_of(primitive_fun)
    rules.vjp = lambda argnums, ans, args, kwargs: lambda g: (None,) * len(argnums)
    rules.jvp = lambda argnums, gs, ans, args, kwargs: None
