"""Patterns: NumPy functions, traced to trees with which nodes are matched.

A pattern is traced like any function, with wildcards as arguments; so is its replacement.
`lambda x: np.log(1 + x)` becomes

    OperationPattern(log, {}, (OperationPattern(add, {}, (NumberPattern("1.0", 1), Wildcard(0))),))

Keyword-only arguments are parameters: `lambda x, *, axis: np.sum(np.exp(x), axis=axis)`.  Where a
parameter is used is found by tracing with two values of it, and comparing the trees.

    OperationPattern, NumberPattern, Wildcard, ParameterWildcard   the nodes of a tree
    traced                                                         the tree of a function
    together                                                       shares one trace among patterns
    variants                                                       a tree with the operands of
                                                                   commutative operations swapped
    matches                                                        whether a node matches a tree
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import Context, ContextVar
from itertools import product
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from wengert._engine.core.graph_fingerprint import is_stopped
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.node_properties import frozen, sizes_of
from wengert._engine.core.op import Op
from wengert._engine.core.recording import tracing
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.tracing import derivation, placeholder
from wengert._engine.core.user_functions import signature_of
from wengert.errors import ArgumentError, at, user_line

T = TypeVar("T")
SAMPLES: Mapping[str, tuple[Any, Any]] = {"axis": (0, 1), "keepdims": (False, True)}
_LENGTH = dim("pattern_length")  # of all axes: patterns must not depend on it
_MAX_COMMUTATIVE = 8  # a pattern has up to 2 ** 8 variants
_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Wildcard(NamedTuple):
    """Matches any node; all occurrences of one wildcard match the same node."""

    number: int


class NumberPattern(NamedTuple):
    """Matches a constant of that value, of any dtype; the key distinguishes 0.0 and -0.0."""

    key: str
    value: Any


class ParameterWildcard(NamedTuple):
    """Matches any value of a parameter; all occurrences of one name match the same value."""

    name: str


class OperationPattern(NamedTuple):
    """Matches an operation with these parameters and operands."""

    op: Op
    params: dict[str, Any]
    args: tuple[Any, ...]


Tree = Wildcard | NumberPattern | OperationPattern


class WildcardBindings(NamedTuple):
    """The nodes and values bound to the wildcards and parameters of a pattern."""

    operands: list[Any]
    params: dict[str, Any]


def number_key(value: Any) -> str:
    """A number as text that distinguishes 0.0 and -0.0, but not 1 and 1.0."""
    return repr(float(value))


# ---- reading functions -------------------------------------------------------------------------


def signature(fun: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the operands and of the parameters of a function."""
    if type(fun) is FunctionType and not fun.__dict__ and not fun.__code__.co_flags & _STARS:
        code = fun.__code__  # `inspect` takes fifty times as long, and there are hundreds of rules
        names, count = code.co_varnames, code.co_argcount
        return names[:count], names[count : count + code.co_kwonlyargcount]
    operands, params = [], []
    for p in signature_of(fun).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            params.append(p.name)
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            operands.append(p.name)
        else:
            raise ArgumentError(
                f"the pattern {fun!r} takes *{p.name}. Name every operand, and every parameter "
                f"after a star: lambda x, *, axis: ...{at(user_line())}."
            )
    return tuple(operands), tuple(params)


def traced(
    fun: Callable[..., Any],
    operands: tuple[str, ...],
    samples: Mapping[str, tuple[Any, Any]],
    dtypes: Mapping[str, Any],
    ndim: int,
) -> Tree:
    """The tree of a function.

    Parameters
    ----------
    fun : callable
    operands : tuple of str
        The names of the wildcards, in order.
    samples : mapping
        Two values of each parameter, with which the function is traced.
    dtypes : mapping
        The dtype of some wildcards while tracing; the others are float64.
    ndim : int
        The number of axes of all wildcards while tracing.

    Raises
    ------
    ArgumentError
        The function depends on shapes, or uses parameters other than by passing them to operations.
    """
    names, params = signature(fun)
    positions = [operands.index(name) for name in names]
    unknown = [p for p in params if p not in samples]
    if unknown:
        raise ArgumentError(
            f"the pattern {fun!r} has the parameter {unknown[0]}. Give two values to trace with, "
            f"samples={{{unknown[0]!r}: (..., ...)}}{at(user_line())}."
        )
    spec = {n: Spec((_LENGTH,) * ndim, np.dtype(dtypes.get(n, float))) for n in names}

    def tree(values: Mapping[str, Any]) -> Any:
        nodes = [placeholder(spec[n], n) for n in names]
        with nullcontext() if _in_shared_trace.get() else _trace():
            out = fun(*map(wrap, nodes), **values)
        wildcards = dict(zip(nodes, positions, strict=True))
        return _tree(out.node if isinstance(out, Handle) else out, wildcards, fun)

    run = _call if _in_shared_trace.get() else Context().run
    first_values = {p: samples[p][0] for p in params}
    generalized: Tree = run(tree, first_values)
    for p in params:
        other = run(tree, {**first_values, p: samples[p][1]})
        generalized = _generalized(generalized, other, p, samples[p], fun)
    return generalized


# Patterns are traced in a separate context, in which no policy, scope or trace is active.
_in_shared_trace = ContextVar("wengert_patterns_together", default=False)


def together(function: Callable[[], T]) -> T:
    """Call a function that traces many patterns, in one trace."""

    def call() -> T:
        _in_shared_trace.set(True)  # this context ends with the call
        with _trace():
            return function()

    return Context().run(call)


@contextmanager
def _trace() -> Iterator[None]:
    with tracing(), derivation(0) as origin:
        origin.where = "a pattern"  # avoids searching the call stack for a user line, which is slow
        yield


def _call(function: Callable[..., T], *args: Any) -> T:
    return function(*args)


def _tree(x: Any, wildcards: Mapping[Node, int], fun: Callable[..., Any]) -> Any:
    if not isinstance(x, Node):
        return NumberPattern(number_key(x), x)
    if x in wildcards:
        return Wildcard(wildcards[x])
    if x.op is CONSTANT and np.ndim(x.value) == 0:
        return NumberPattern(number_key(x.value), x.value)
    if isinstance(x.op, LeafOp) or sizes_of(x.params):
        raise ArgumentError(
            f"the pattern {fun!r} depends on the shape of its operands ({x.op.name}). Write this "
            f"rule as a function of the node (wengert.rewrite.rule){at(user_line())}."
        )
    return OperationPattern(x.op, dict(x.params), tuple(_tree(a, wildcards, fun) for a in x.inputs))


def _generalized(
    a: Any, b: Any, name: str, values: tuple[Any, Any], fun: Callable[..., Any]
) -> Any:
    """The tree that generalizes two, with a parameter wildcard where they differ."""
    if type(a) is not OperationPattern or type(b) is not OperationPattern:
        if a == b:
            return a
        raise _unsupported_use(name, fun)
    if a.op is not b.op or len(a.args) != len(b.args) or a.params.keys() != b.params.keys():
        raise _unsupported_use(name, fun)
    params = {}
    for k, v in a.params.items():
        if isinstance(v, ParameterWildcard) or frozen(v) == frozen(b.params[k]):
            params[k] = v
        elif (frozen(v), frozen(b.params[k])) == (frozen(values[0]), frozen(values[1])):
            params[k] = ParameterWildcard(name)
        else:
            raise _unsupported_use(name, fun)
    pairs = zip(a.args, b.args, strict=True)
    return OperationPattern(
        a.op, params, tuple(_generalized(x, y, name, values, fun) for x, y in pairs)
    )


def _unsupported_use(name: str, fun: Any) -> ArgumentError:
    return ArgumentError(
        f"the pattern {fun!r} computes with the value of {name}, which it may only pass to "
        f"operations. Write this rule as a function of the node (wengert.rewrite.rule)"
        f"{at(user_line())}."
    )


# ---- comparing ---------------------------------------------------------------------------------


def variants(tree: Any) -> list[Any]:
    """The same tree with the operands of commutative operations in every order."""
    count = _count(tree)
    if not count:
        return [tree]
    if count > _MAX_COMMUTATIVE:
        raise ArgumentError(
            f"a pattern has {count} commutative operations, and {_MAX_COMMUTATIVE} are allowed. "
            "Split it, or write the rule as a function of the node (wengert.rewrite.rule)"
            f"{at(user_line())}."
        )
    return list(_orders(tree))


def _count(tree: Any) -> int:
    if type(tree) is not OperationPattern:
        return 0
    return tree.op.commutative + sum(map(_count, tree.args))


def _orders(tree: Any) -> Iterator[Any]:
    if type(tree) is not OperationPattern:
        yield tree
        return
    for args in product(*map(_orders, tree.args)):
        yield OperationPattern(tree.op, tree.params, args)
        if tree.op.commutative and not (type(args[0]) is Wildcard and args[0] == args[1]):
            yield OperationPattern(tree.op, tree.params, args[::-1])


def matches(
    tree: Any, node: Node, bindings: WildcardBindings, number: Callable[[Node], str | None]
) -> bool:
    """Whether a node matches a tree; `bindings` receives the nodes bound to wildcards.

    Parameters
    ----------
    number : callable
        The key of the number that all elements of a node equal, or None.
    """
    kind = type(tree)
    if kind is Wildcard:
        bound = bindings.operands[tree.number]
        if bound is None:
            bindings.operands[tree.number] = node
            return True
        return bound is node
    if kind is NumberPattern:
        return bool(number(node) == tree.key)
    if node.op is not tree.op or len(node.args) != len(tree.args):
        return False
    if (node.params or tree.params) and not _params_match(tree.params, node.params, bindings):
        return False
    for part, a in zip(tree.args, node.args, strict=True):
        # Do not match through stop_gradient: the replacement would be differentiable.
        if type(part) is OperationPattern and type(node) is Node and is_stopped(a):
            return False
        if not matches(part, a, bindings, number):
            return False
    return True


_DEFAULTS = {"keepdims": False}  # of parameters whose default is not None


def _params_match(
    tree: Mapping[str, Any], params: Mapping[str, Any], bindings: WildcardBindings
) -> bool:
    for k in {**tree, **params}:
        expected, actual = tree.get(k), params.get(k, _DEFAULTS.get(k))
        if type(expected) is ParameterWildcard:
            bound = bindings.params.setdefault(expected.name, actual)
            if bound is not actual and frozen(bound) != frozen(actual):
                return False
        elif frozen(_without_default(expected)) != frozen(_without_default(actual)):
            return False
    return True


def _without_default(x: Any) -> Any:
    """A parameter with None for False: both are defaults, which operations may omit."""
    return None if x is False else x
