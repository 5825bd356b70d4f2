"""Properties of values, inferred without computing them.

    finite                             every element is a finite number
    number                             no element is NaN
    positive                           no element is zero or negative
    nonnegative                        no element has its sign bit set: 0.0 is, -0.0 is not
    nonzero                            no element is zero
    integer                            every finite element is an integer
    symmetric, diagonal, lower, upper  of the matrices in the last two axes
    definite                           they are symmetric and positive definite

All but `finite` and `number` ignore NaN: exp(x) is nonnegative, also where x is NaN.  They hold in
floating-point arithmetic: exp(x) is not positive, because it underflows to zero, and the sum of
finite numbers may be infinite.

Facts are known from constants, dtypes and assumptions of the user (`assume`), and are propagated
through operations by the rules of this file.  They are inferred on demand, once for each node.

Assume: properties of values stated by the user.

`assume` is an identity node with facts, which rewrite rules use: `x * 0.0` is
zero if x is finite, `A.T` is A if A is symmetric.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.op_facts import NOTHING_KNOWN, ValueRange
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import elementwise_batching
from wengert._engine.kinds.linear_map import LinearMap, linear
from wengert.errors import ArgumentError, at, user_line

from .rule import RewriteContext

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

FACTS = (
    "finite number positive nonnegative nonzero integer symmetric diagonal lower upper definite"
).split()
Known = frozenset[str]
NOTHING: Known = frozenset()

_IMPLIED = {
    "finite": {"number"},
    "positive": {"nonnegative", "nonzero"},
    "diagonal": {"symmetric", "lower", "upper"},
    "definite": {"symmetric"},
}
_ELEMENTS = frozenset(FACTS[:6])
_EXAMINED_ELEMENTS = 1 << 16  # larger constants are not examined


def closed(facts: Any) -> Known:
    """Facts, and those that they imply."""
    known = set(facts)
    for fact in list(known):
        known |= _IMPLIED.get(fact, set())
    if {"nonnegative", "nonzero"} <= known:
        known.add("positive")
    if {"lower", "upper"} <= known or ("symmetric" in known and known & {"lower", "upper"}):
        known |= {"diagonal", "symmetric", "lower", "upper"}
    return frozenset(known)


def facts_of_value(value: Operand, max_elements: int | None = _EXAMINED_ELEMENTS) -> Known:
    """The facts of a plain array or number; none if it has more than `max_elements` elements."""
    x = np.asarray(value)
    if x.dtype.kind not in "biuf" or (max_elements is not None and x.size > max_elements):
        return NOTHING
    nan = np.isnan(x)
    holds = {
        "finite": np.isfinite(x),
        "number": ~nan,
        "positive": (x > 0) | nan,
        "nonnegative": ~np.signbit(x) | nan if x.dtype.kind == "f" else x >= 0,
        "nonzero": x != 0,
        "integer": ~np.isfinite(x) | (np.trunc(x) == x),
    }
    facts = {name for name, where in holds.items() if np.all(where)}
    if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        facts |= {
            name
            for name, other in (("symmetric", x.mT), ("lower", np.tril(x)), ("upper", np.triu(x)))
            if np.array_equal(x, other)
        }
        if {"symmetric", "finite"} <= facts and _is_definite(x):
            facts.add("definite")
    return closed(facts)


def _is_definite(x: np.ndarray[Any, Any]) -> bool:
    try:
        np.linalg.cholesky(x.astype(float))
    except np.linalg.LinAlgError:
        return False
    return True


def checked(names: dict[Any, Any] | list[str]) -> Known:
    """The set of these facts; an error if one of them does not exist."""
    for name in names:
        if name not in FACTS:
            raise ArgumentError(
                f"{name!r} is not a property of values. Choose among {', '.join(FACTS)}"
                f"{at(user_line())}."
            )
    return closed(names)


class Facts:
    """The facts of the nodes of a graph; inferred on demand, and cached."""

    def __init__(self, context: RewriteContext) -> None:
        self._context = context
        self._known: dict[Node, Known] = {}

    def has(self, node: Node, *facts: str) -> bool:
        """Whether a node is known to have all of these properties."""
        known = self.of(node)
        return all(fact in known for fact in facts)

    def of(self, node: Node) -> Known:
        """All facts of a node."""
        known = self._known
        stack = [node]
        while stack:
            current = stack[-1]
            if current in known:
                stack.pop()
                continue
            rule = _rule_of(current.op)
            pending = [a for a in current.args if a not in known] if rule is not None else []
            if pending:
                stack += pending
                continue
            known[current] = self._found(current, rule)
            stack.pop()
        return known[node]

    def _found(self, node: Node, rule: Any) -> Known:
        spec = self._context.spec(node)
        if type(spec) is not Spec:
            return NOTHING
        facts: set[str] = set()
        if spec.dtype.kind in "biu":
            facts |= {"finite", "integer"} | ({"nonnegative"} if spec.dtype.kind != "i" else set())
        if node.op is CONSTANT:
            facts |= facts_of_value(node.value)
        if rule is not None and not isinstance(node.op, LeafOp):
            operands = [self._known[a] for a in node.args]
            facts |= rule(operands, node, self._context)
        return closed(facts)


# ---- propagation through operations ------------------------------------------------------------

_RULES: dict[str, Callable[..., Any]] = {}


def _rule_of(op: Any) -> Callable[..., Any] | None:
    """The rule for an operation: one of this file, or one derived from its value range."""
    rule = _RULES.get(op.name)
    if rule is None and op.range is not NOTHING_KNOWN:
        rule = functools.partial(_by_range, op.range)
    return rule


def _by_range(
    known_range: ValueRange, known: list[Known], node: Node, context: RewriteContext
) -> Known:
    facts = known_range.always | (known[0] & known_range.inherited)
    return facts | known_range.of_numbers if "number" in known[0] else facts


def fact_rule(*names: str) -> Callable[[Any], Any]:
    """Register a rule for operations (a decorator).

    The function takes the facts of the operands, the node and the context; it returns the facts of
    the node.
    """

    def enter(function: Any) -> Any:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return enter


_RULES["full"] = lambda known, node, context: facts_of_value(node.params["value"]) & _ELEMENTS
_RULES["eye"] = lambda known, node, context: (
    {"finite", "integer", "nonnegative", *_shape_of_eye(node)}
)
_RULES["assume"] = lambda known, node, context: known[0] | set(node.params["facts"])
_RULES["absolute"] = _RULES["fabs"] = lambda known, node, context: (
    _if_float(node, context, "nonnegative")
    | (known[0] & {"finite", "number", "nonzero", "integer"})
)
_RULES["negative"] = lambda known, node, context: (
    known[0] & {"finite", "number", "nonzero", "integer", "symmetric", "diagonal", "lower", "upper"}
)


def _shape_of_eye(node: Node) -> set[str]:
    params = node.params
    is_identity = params.get("offset", 0) == 0 and params["rows"] == params["columns"]
    return {"diagonal", "definite"} if is_identity else set()


def _if_float(node: Node, context: RewriteContext, fact: str) -> set[str]:
    """The fact, unless the node is an integer: they wrap around, abs of the minimum is negative."""
    return {fact} if context.spec(node).dtype.kind == "f" else set()


@fact_rule("square")
def _square(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return _if_float(node, context, "nonnegative") | (known[0] & {"number", "integer"})


@fact_rule("sqrt")
def _sqrt(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    if "nonnegative" not in known[0]:
        return set()
    return {"nonnegative"} | (known[0] & {"finite", "number", "nonzero"})


@fact_rule("add")
def _add(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    a, b = known
    facts = set(a & b & {"nonnegative", "integer"})
    if {"nonnegative"} <= facts and (a | b) & {"positive"}:
        facts.add("positive")
    if {"nonnegative", "number"} <= a & b:
        facts.add("number")  # no inf - inf
    if context.spec(node).dtype.kind in "iu":
        facts -= {"nonnegative", "positive"}  # they wrap around
    return facts | _structure(known, node, context)


@fact_rule("subtract")
def _subtract(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return set(known[0] & known[1] & {"integer"}) | _structure(known, node, context)


@fact_rule("multiply")
def _multiply(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    a, b = known
    facts = set(a & b & {"integer"})
    if context.spec(node).dtype.kind == "f":
        facts |= a & b & {"nonnegative"}
    return facts | _structure(known, node, context)


@fact_rule("divide")
def _divide(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return set(known[0] & known[1] & {"nonnegative"})


def _structure(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    """An elementwise operation on symmetric matrices of one shape gives a symmetric matrix."""
    if context.spec(node.args[0]) != context.spec(node.args[1]):
        return set()
    # This includes NaN from inf - inf or 0 * inf, which is at symmetric positions.
    return set(known[0] & known[1] & {"symmetric"})


@fact_rule("maximum", "fmax")
def _maximum(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    a, b = known
    facts = set(a & b & {"finite", "number", "integer", "nonnegative", "positive", "nonzero"})
    if node.op.name == "maximum":
        facts |= (a | b) & {"positive"}
    return facts


@fact_rule("minimum", "fmin")
def _minimum(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return set(known[0] & known[1] & (_ELEMENTS))


@fact_rule("where")
def _where(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return set(known[1] & known[2] & _ELEMENTS)


@fact_rule("floor", "ceil", "rint", "trunc")
def _rounded(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return {"integer"} | (known[0] & {"finite", "number"})


@fact_rule(
    "reshape", "expand_dims", "squeeze", "broadcast_to", "flip", "roll", "diagonal", "getitem"
)
def _rearranged(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return set(known[0] & _ELEMENTS)


@fact_rule("copy", "stop_gradient", "positive")
def _same(known: list[Known], node: Node, context: RewriteContext) -> Known:
    return known[0]


@fact_rule("transpose")
def _transposed(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    facts = set(known[0] & _ELEMENTS)
    axes, ndim = node.params.get("axes"), len(context.spec(node).shape)
    swapped = (*range(ndim - 2), ndim - 1, ndim - 2)
    order = tuple(range(ndim))[::-1] if axes is None else tuple(a % ndim for a in axes)
    if ndim >= 2 and order == swapped:
        facts |= known[0] & {"symmetric", "diagonal", "definite"}
        facts |= {"lower"} if "upper" in known[0] else set()
        facts |= {"upper"} if "lower" in known[0] else set()
    return facts


@fact_rule("sum", "max", "min", "mean")
def _reduced(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    if context.spec(node).dtype.kind != "f":
        return set()
    return set(known[0] & {"nonnegative"})


@fact_rule("inv")
def _inverse(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    # LAPACK's inverse of a symmetric matrix is symmetric only up to rounding.
    return set(known[0] & {"diagonal"})


@fact_rule("cholesky")
def _cholesky(known: list[Known], node: Node, context: RewriteContext) -> set[str]:
    return {"lower"}


def _operation() -> LinearMap:
    """The operation; defined in a function because users call another `assume`, below."""

    def assume(x: Array, *, facts: tuple[str, ...]) -> Any:
        """The operand, which is assumed to have the given properties."""
        return x

    operation: LinearMap = linear(assume, oracle=lambda x, *, facts: x)
    return operation


_assume = _operation()
_assume.spec(lambda x, *, facts: x)
elementwise_batching(_assume)


@_assume.transpose
def _assume_back(t: Array, x: Array, *, facts: tuple[str, ...]) -> Any:
    return t


@_assume.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"facts": ("finite", "number")}


def assume(x: Operand, **facts: bool) -> Any:
    """State properties of a value that simplification may use.

    Parameters
    ----------
    x : array or Tensor
    **facts
        Names with True: finite, number (no NaN), positive, nonnegative (no sign bit: 0.0, but not
        -0.0), nonzero, integer; of matrices in the last two axes symmetric, diagonal, lower, upper
        (triangular), definite (symmetric and positive definite).

    Returns
    -------
    array or Tensor
        The value itself; while a graph is built, a node with the facts.

    Raises
    ------
    ArgumentError
        An unknown fact; or a concrete value does not have the property.

    Notes
    -----
    Concrete values are checked. In a graph there is no check, and no cost: inputs that contradict
    the facts silently give wrong results. Use `wengert.debug.guard` to check at each run.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import assume, simplify
    >>> f = lambda a: assume(a, symmetric=True).T @ np.ones(2)
    >>> graph = simplify(wg.trace(f)(np.eye(2)))
    >>> [n.op.name for n in graph if n.op.name == "transpose"]
    []
    """
    assumed = checked([name for name, holds in facts.items() if holds])
    checked(facts)
    if isinstance(x, Handle):
        if x.node.value is not None:
            _check(x.node.value, assumed)
        return _assume(x, facts=tuple(sorted(assumed)))
    _check(x, assumed)
    return x


def _check(value: Any, facts: frozenset[str]) -> None:
    known = facts_of_value(value, max_elements=None)
    for fact in sorted(facts, key=FACTS.index):
        if fact not in known:
            raise ArgumentError(
                f"the value is assumed to be {fact}, but it is not. Omit the fact, or correct the "
                f"value{at(user_line())}."
            )
