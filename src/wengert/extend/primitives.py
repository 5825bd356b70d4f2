"""Style 002: primitives and their registered rules (a Julia tape's @vjp).

    @primitive                              a function of arrays; a tensor among its operands
    def pow(x, y): return x ** y            makes the call one node

    @vjp(pow)                               inline definition
    def pow_rule(g, p, x, y): return g * y * x ** (y - 1), g * p * np.log(x)
    vjp[exp] = lambda g, p, x: (g * p,)     assignment
    vjp[pow] = vjp_pow                      delegation to a named function

The contract: a rule gets the complete adjoint `g`, the forward result `p` and the operands, that
is arity + 2 arguments, and returns a tuple with one entry for each operand, None for an operand
without derivative.  Written in NumPy functions, it differentiates again.

A rule may be restricted to types of operands: `@vjp(pow, float, int)`, `vjp[pow, float, int]`.
`int`, `float`, `complex` and `bool` mean single numbers, NumPy's and 0-d arrays included, and an
int is also a float and a float a complex; `numpy.ndarray` means an array with at least one axis; a
NumPy scalar type means a single number of that type, any other class its instances, `object`
anything.  The most specific matching rule is used; if there are two, an error is raised.

`jvp` is the same table for forward rules, `(dots, p, *operands) -> tangent`; if only one of the two
is stated, the other is derived.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.op import REGISTRY, register
from wengert._engine.core.user_functions import known_signature

from ..errors import NotDifferentiableError, RegistryError, RuleError, at, user_line
from . import style_adapter
from .style_adapter import UserOperation, name_in_module, stand_in
from .traced_primitives import written

Rule = Callable[..., Any]
Signature = tuple[type, ...]

# ---- types of operands --------------------------------------------------------------------------

_TOWER: list[type] = [bool, int, float, complex]
_ABSTRACT: dict[type, type] = {
    numbers.Integral: int,
    numbers.Rational: float,
    numbers.Real: float,
    numbers.Complex: complex,
    numbers.Number: complex,
    np.bool_: bool,
    np.integer: int,
    np.floating: float,
    np.inexact: complex,
    np.complexfloating: complex,
    np.number: complex,
}
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def matches(operand: Any, wanted: type) -> bool:
    """Whether an operand, tensor or plain, matches a type of a rule (see the module docstring)."""
    if wanted is object:
        return True
    value = stand_in(operand) if isinstance(operand, Handle) else operand
    is_number = isinstance(value, bool | int | float | complex | np.generic | np.ndarray)
    if not is_number:
        return isinstance(value, wanted)
    if wanted is np.ndarray:
        return np.ndim(value) > 0
    if np.ndim(value):
        return False
    dtype = np.asarray(value).dtype
    wanted = _ABSTRACT.get(wanted, wanted)
    if wanted in _TOWER:
        return dtype.kind in _RANK and _RANK[dtype.kind] <= _TOWER.index(wanted)
    return issubclass(dtype.type, wanted)


def _narrower(a: type, b: type) -> bool:
    """Whether every operand of type `a` is of type `b`."""
    if a is b or b is object:
        return True
    x, y = _ABSTRACT.get(a, a), _ABSTRACT.get(b, b)
    if x in _TOWER and y in _TOWER:
        return _TOWER.index(x) <= _TOWER.index(y)
    if isinstance(a, type) and issubclass(a, np.generic) and y in _TOWER:
        return _RANK.get(np.dtype(a).kind, 9) <= _TOWER.index(y)
    return issubclass(a, b)


# ---- primitives ---------------------------------------------------------------------------------


class Primitive(UserOperation):
    """A function that is one node of the graph; created by the decorator `primitive`."""

    may_be_nonlinear = True
    is_primitive = True

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        discrete: bool,
        oracle: Any,
        callback: bool | None = None,
    ):
        super().__init__(function, name, discrete=discrete, oracle=oracle)
        self.callback = callback
        self.__wrapped__ = function
        self.__module__ = function.__module__
        self.signature = None if isinstance(function, np.ufunc) else known_signature(function)
        found = list(self.signature.parameters.values()) if self.signature else []
        self.operands = [
            p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self.variadic = self.signature is None or any(p.kind is p.VAR_POSITIONAL for p in found)
        if isinstance(function, np.ufunc):
            self.operands = [f"x{i + 1}" for i in range(function.nin)]
            self.variadic = False
        self.required = 0 if self.variadic or not self.signature else len(self.operands)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Call the function; operands may be keywords, keyword-only arguments are parameters."""
        if style_adapter.NAME in params:  # a node that is traced again
            joined, params = style_adapter.joined(args, params)
            args = tuple(joined)
        if len(args) < self.required:
            bound = self.signature.bind(  # type: ignore[union-attr]
                *args, **params
            )
            named = bound.kwargs
            bound.apply_defaults()  # an omitted operand is a constant
            args, params = bound.args, named
        for a in args:
            if isinstance(a, Handle):
                in_graph = any([is_traced(x) for x in args])
                if in_graph:
                    found = written(self, args, params)
                    if found is not NotImplemented:
                        return found
                if in_graph or any([x is None for x in args]):  # not a value of an operand
                    numbers_only, params = style_adapter.separated(args, params)
                    args = tuple(numbers_only)
                return apply(self, args, params)
        return self.function(*args, **params)

    def _run(self, *values: Any, **params: Any) -> Any:
        full, rest = style_adapter.joined(values, params)
        return super()._run(*full, **rest)


def primitive(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    discrete: bool = False,
    oracle: Any = None,
    callback: bool | None = None,
) -> Any:
    """Make a function a primitive: a decorator, or `exp = primitive(math.exp)`.

    Parameters
    ----------
    function : callable
        A function of arrays and numbers; positional arguments are operands, keyword-only arguments
        are static parameters. It may contain any Python code.
    name : str, optional
        By default its module and name. A redefinition in the same module replaces it.
    discrete : bool, default False
        Whether its derivative is zero.
    oracle : callable, optional
        An independent implementation of the value, for `wengert.testing.check_op`.
    callback : bool, optional
        Its use in a graph. By default function and rule are traced, once for each trace, and
        compiled with the rest; a function that cannot be traced becomes a host callback. True:
        always a host callback, required for functions with side effects. False: raise an error if
        it cannot be traced.

    Returns
    -------
    Primitive
        Callable like the function. Without a rule it works forward, and raises an error in a
        derivative.

    Examples
    --------
    >>> from wengert.extend import primitive, vjp
    >>> @primitive
    ... def cube(x):
    ...     return x * x * x
    >>> vjp[cube] = lambda g, p, x: (3.0 * g * x * x,)
    >>> float(wg.grad(cube)(2.0)), float(wg.grad(wg.grad(cube))(2.0))
    (12.0, 12.0)
    """
    if function is None:
        return lambda f: primitive(
            f, name=name, discrete=discrete, oracle=oracle, callback=callback
        )
    if isinstance(function, Primitive):
        return function
    key = name or name_in_module(function)
    made = Primitive(function, key, discrete, oracle, callback)
    if isinstance(REGISTRY.get(key), Primitive):
        return register(made, replace=True)
    return register(made)


# ---- tables of rules ----------------------------------------------------------------------------


class Rules:
    """A table of rules: for each primitive, rules by the types of the operands.

    Parameters
    ----------
    mode : str
        "vjp" or "jvp".
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._rules: dict[Primitive, dict[Signature, Rule]] = {}

    # ---- registering ---------------------------------------------------------------------------

    def __call__(self, function: Any, *types: type) -> Callable[[Rule], Rule]:
        """Register a rule for a primitive and types of operands (a decorator)."""

        def enter(rule: Rule) -> Rule:
            self[(function, *types)] = rule
            return rule

        return enter

    def __setitem__(self, key: Any, rule: Rule) -> None:
        """Register a rule, or replace the one for the same types.

        Raises
        ------
        RegistryError
            The function is not a primitive, or the number of types is not its arity.
        RuleError
            The signature of the rule does not match the contract.
        """
        op, types = self._key(key)
        self._check_arity(op, rule)
        table = self._rules.setdefault(op, {})
        table[types] = rule
        dispatch = _Dispatch(self, op)
        if self.mode == "vjp":
            op.vjp_rule = dispatch
        else:
            op.jvp_rule = dispatch

    def __delitem__(self, key: Any) -> None:
        """Remove a rule."""
        op, types = self._key(key)
        table = self._rules.get(op, {})
        if types not in table:
            raise RegistryError(f"There is no {self.mode} rule of {op.name} for {_show(types)}.")
        del table[types]
        if not table and self.mode == "vjp":
            op.vjp_rule = None
        elif not table:
            op.jvp_rule = None

    # ---- looking up ----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Rule:
        """The rule of a primitive as a callable; with types, the rule for exactly these."""
        op, types = self._key(key)
        table = self._table(op)
        if isinstance(key, tuple):
            if types not in table:
                raise self._none_for(op, _show(types))
            return table[types]
        return _Dispatch(self, op)

    def lookup(self, function: Any, *types: type) -> Rule:
        """The rule for operands of these types; without types the general one.

        Raises
        ------
        RegistryError
            There is none, or the match is ambiguous.
        """
        op, wanted = self._key((function, *types))
        table = self._table(op)
        fits = [s for s in table if len(s) == len(wanted) and all(map(_narrower, wanted, s))]
        if not fits and not types and len(table) == 1:
            fits = list(table)
        return table[self._best(op, fits, _show(wanted))]

    def rule_for(self, op: Primitive, operands: tuple[Any, ...]) -> Rule:
        """The rule for these operands."""
        table = self._rules.get(op, {})
        given = ", ".join(_kind(x) for x in operands)
        fits = [s for s in table if _covers(s, operands)]
        if not fits:
            known = "; ".join(_show(s) for s in table)
            raise NotDifferentiableError(
                f"{op.name} has no {self.mode} rule for operands of types ({given}). It has rules "
                f"for {known}. Register one with @{self.mode}({op.__name__}, ...){at(user_line())}."
            )
        return table[self._best(op, fits, f"({given})")]

    def __contains__(self, function: Any) -> bool:
        return isinstance(function, Primitive) and bool(self._rules.get(function))

    def __iter__(self) -> Iterator[Primitive]:
        return iter([op for op, table in self._rules.items() if table])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def rules(self) -> list[tuple[Primitive, Signature, Rule]]:
        """Every rule: the primitive, the types, the function."""
        return [(op, s, rule) for op, table in self._rules.items() for s, rule in table.items()]

    # ---- details -------------------------------------------------------------------------------

    def _key(self, key: Any) -> tuple[Primitive, Signature]:
        function, *types = key if isinstance(key, tuple) else (key,)
        if not isinstance(function, Primitive):
            raise RegistryError(
                f"{getattr(function, '__name__', function)!r} is not a primitive, so it can have "
                f"no {self.mode} rule. Decorate it with @primitive first{at(user_line())}."
            )
        if types and not function.variadic and len(types) != len(function.operands):
            raise RegistryError(
                f"{len(types)} types for {function.name}, which has {len(function.operands)} "
                f"operands. Give one type for each{at(user_line())}."
            )
        if function.variadic:
            return function, tuple(types)
        return function, tuple(types) or (object,) * len(function.operands)

    def _check_arity(self, op: Primitive, rule: Rule) -> None:
        if not callable(rule):
            raise RuleError(
                f"The {self.mode} rule of {op.name} is a {type(rule).__name__}, not a function"
                f"{at(user_line())}."
            )
        signature = known_signature(rule)
        if signature is None or op.variadic:
            return
        count = 2 + len(op.operands)
        try:
            signature.bind(*[None] * count)
        except TypeError as error:
            if "keyword-only" in str(error):
                return  # static parameters of the primitive
            first = "g" if self.mode == "vjp" else "dots"
            raise RuleError(
                f"The {self.mode} rule of {op.name} takes ({', '.join(signature.parameters)}), but "
                f"it will be called with ({', '.join([first, 'p', *op.operands])}): {error}. Give "
                f"it these {count} arguments{at(user_line())}."
            ) from None

    def _table(self, op: Primitive) -> dict[Signature, Rule]:
        table = self._rules.get(op)
        if not table:
            raise self._none_for(op, "any operands")
        return table

    def _none_for(self, op: Primitive, what: str) -> RegistryError:
        known = "; ".join(_show(s) for s in self._rules.get(op, {})) or "nothing"
        return RegistryError(
            f"{op.name} has no {self.mode} rule for {what}; it has rules for {known}. Register one "
            f"with @{self.mode}({op.__name__}, ...){at(user_line())}."
        )

    def _best(self, op: Primitive, fits: list[Signature], what: str) -> Signature:
        if not fits:
            raise self._none_for(op, what)
        best = [s for s in fits if all(_all_narrower(s, other) for other in fits)]
        if len(best) == 1:
            return best[0]
        raise RegistryError(
            f"Two {self.mode} rules of {op.name} match {what} equally well: "
            f"{' and '.join(_show(s) for s in fits)}. Register one for the types in common"
            f"{at(user_line())}."
        )


class _Dispatch:
    """The rule of a primitive: calls the rule for the types of the operands."""

    def __init__(self, rules: Rules, op: Primitive) -> None:
        self.rules, self.op = rules, op

    def __call__(self, g: Any, out: Any, *operands: Any, **params: Any) -> Any:
        full, rest = style_adapter.joined(operands, params)
        if self.rules.mode == "jvp":
            g = style_adapter.joined(g, params, keep=False)[0]
        found = self.rules.rule_for(self.op, tuple(full))(g, out, *full, **rest)
        return style_adapter.of_numbers(found, params) if self.rules.mode == "vjp" else found

    def __repr__(self) -> str:
        return f"<{self.rules.mode} rules of {self.op.name}>"


def _covers(signature: Signature, operands: tuple[Any, ...]) -> bool:
    if not signature:
        return True  # a primitive with any number of operands
    return len(signature) == len(operands) and all(map(matches, operands, signature))


def _all_narrower(a: Signature, b: Signature) -> bool:
    return not b or (len(a) == len(b) and all(map(_narrower, a, b)))


def _show(types: Signature) -> str:
    return f"({', '.join(getattr(t, '__name__', str(t)) for t in types)})"


def _kind(x: Any) -> str:
    value = stand_in(x) if isinstance(x, Handle) else x
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return type(value).__name__
    return f"array of {dtype}" if np.ndim(value) else str(dtype)


vjp = Rules("vjp")
jvp = Rules("jvp")

__all__ = ["Primitive", "Rules", "jvp", "primitive", "vjp"]
